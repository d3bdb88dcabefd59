"""Layers that learn for a part of the training only: as in a plain loop, or an error; never left out in silence."""

import pytest
import torch
import torch.distributed as dist
from torch_runs import make_conf, make_worker, small_dataset, weights

import rtrain
from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.torch.loop import train

HERE = __name__
NUM_EPOCHS, RATE = 3, 0.5


class Net(torch.nn.Module):
    """Two layers, always with the same weights; the first one is frozen or not."""

    def __init__(self, frozen):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 8), torch.nn.Linear(8, 3)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.arange(weight.numel()).sin().reshape(weight.shape) / 4)
        self.first.requires_grad_(not frozen)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x.flatten(1))))


class Thaw(rtrain.WorkerCallback):
    """Has the first layer learn from the second epoch on.

    Args:
        freezes: Freeze it before.
        adds: Give it to the optimizer.
    """

    def __init__(self, freezes=False, adds=False):
        self.freezes, self.adds = freezes, adds

    def train_begin(self, training):
        if self.freezes:
            training.model.first.requires_grad_(False)

    def epoch_begin(self, training):
        if training.epoch == 1 and self.adds:
            training.optimizer.add_param_group({"params": list(training.model.first.parameters())})
        if training.epoch >= 1:
            training.model.first.requires_grad_(True)


def conf_of(frozen, find=False, strategy="ddp", accumulate=1, **callback):
    return make_conf(
        model={"_target_": f"{HERE}.Net", "frozen": frozen},
        callbacks=[{"_target_": f"{HERE}.Thaw", **callback}],
        optimizer={"_target_": "torch.optim.SGD", "lr": RATE},
        global_batch_size=64 // accumulate,
        max_epochs=NUM_EPOCHS,
        shuffle=False,
        find_unused_parameters=find,
        strategy=strategy,
        accumulate_steps=accumulate,
        clip_norm=1.0,
    )


def fit(folder, conf, stop_after=None, **keys):
    worker = make_worker(folder, conf, channel=RecordingChannel(stop_after), **keys)
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)
    return weights(folder)


def fit_rank(rank, folder, conf):
    fit(folder, conf, rank=rank, world_size=dist.get_world_size())


def error_of_rank(rank, folder, conf):
    with pytest.raises(TrainingError) as caught:
        fit_rank(rank, folder, conf)
    return caught.value.message


def by_hand():
    """Return the weights of a plain loop."""
    data = small_dataset()
    columns, info, net = data.splits["train"].columns, data.info, Net(frozen=True)
    x, y = (torch.tensor(columns["x"]) - info.mean[0]) / info.std[0], torch.tensor(columns["y"])
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    for epoch in range(NUM_EPOCHS):
        net.first.requires_grad_(epoch >= 1)
        for rows in torch.arange(len(y)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    return net.state_dict()


def assert_like_by_hand(found):
    torch.testing.assert_close(dict(found), dict(by_hand()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stops", [(), (2,), (4,), (1, 2, 2)])
def test_a_layer_that_a_callback_freezes_first_learns_later(tmp_path, stops):
    conf = conf_of(frozen=False, freezes=True)
    for stop in stops:
        fit(tmp_path, conf, stop_after=stop)
    assert_like_by_hand(fit(tmp_path, conf))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_it_does_on_two_workers_too(world, tmp_path, accumulate):
    world.run(fit_rank, str(tmp_path), conf_of(frozen=False, freezes=True, find=True, accumulate=accumulate))
    assert_like_by_hand(weights(tmp_path))


def test_a_layer_that_is_frozen_in_the_model_learns_where_the_optimizer_gets_it(tmp_path):
    assert_like_by_hand(fit(tmp_path, conf_of(frozen=True, adds=True)))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_else_its_first_gradient_is_an_error(tmp_path, accumulate):
    with pytest.raises(TrainingError, match=r"first\.weight, first\.bias: frozen .*; the optimizer lacks it") as caught:
        fit(tmp_path, conf_of(frozen=True, accumulate=accumulate))
    assert "train_begin" in caught.value.hint


@pytest.mark.parametrize("keys", [{}, {"adds": True}, {"find": True}, {"strategy": "accelerate"}], ids=str)
def test_on_two_workers_it_always_is(world, tmp_path, keys):
    told = world.run(error_of_rank, str(tmp_path), conf_of(frozen=True, **keys))
    assert all("workers would not average its gradients" in one for one in told)
