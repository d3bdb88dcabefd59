"""Training that goes on from a checkpoint by the optimizer's arguments of now."""

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from rtrain.trainers.torch.checkpoint.state import TrainState


def make_state(lr, momentum, schedule):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    return TrainState(model=model, optimizer=optimizer, scheduler=schedule(optimizer), scaler=scaler, ema=None)


def train(state, num_steps):
    rates = []
    for _ in range(num_steps):
        state.model(torch.ones(3, 2)).sum().backward()
        rates.append(state.optimizer.param_groups[0]["lr"])
        state.optimizer.step()
        if state.scheduler is not None:
            state.scheduler.step()
    return rates


def sequential(optimizer):
    parts = [LinearLR(optimizer, 0.1, total_iters=3), CosineAnnealingLR(optimizer, 7)]
    return SequentialLR(optimizer, parts, [3])


SCHEDULES = {"none": lambda _: None, "cosine": lambda one: CosineAnnealingLR(one, 10), "sequential": sequential}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_a_new_rate_goes_on_along_the_schedule(schedule):
    before, whole = make_state(0.1, 0.9, schedule), make_state(0.02, 0.5, schedule)
    expected = train(whole, 10)
    train(before, 5)
    now = make_state(0.02, 0.5, schedule)
    now.optimizer.load_state_dict(before.optimizer.state_dict())
    if now.scheduler is not None:
        now.scheduler.load_state_dict(before.scheduler.state_dict())
    now.change_optimizer({"_target_": "x", "lr": 0.1, "momentum": 0.9}, {"_target_": "x", "lr": 0.02, "momentum": 0.5})
    assert now.optimizer.param_groups[0]["momentum"] == 0.5
    assert train(now, 5) == pytest.approx(expected[5:])
    old, new = (list(one.optimizer.state_dict()["state"]) for one in (before, now))
    assert old == new  # its momenta are there


def test_what_has_not_changed_stays_what_the_checkpoint_says():
    before = make_state(0.1, 0.9, SCHEDULES["cosine"])
    train(before, 4)
    rate = before.optimizer.param_groups[0]["lr"]
    before.change_optimizer({"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9})
    assert before.optimizer.param_groups[0]["lr"] == rate
