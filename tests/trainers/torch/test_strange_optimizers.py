"""An optimizer takes numbers and moments of a checkpoint, and neither flags nor tensors that don't fit its weights."""

from __future__ import annotations

import copy

import pytest
import torch

from rtrain.errors import CheckpointError
from rtrain.trainers.torch.checkpoint.optimizer_state import checked_state

FLAGS = (
    "fused",
    "foreach",
    "capturable",
    "differentiable",
    "maximize",
    "amsgrad",
    "nesterov",
    "decoupled_weight_decay",
)
OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.1, "fused": True},
    "AdamW": {"lr": 0.1, "amsgrad": True},
    "Adagrad": {"lr": 0.1},
    "RMSprop": {"lr": 0.1},
    "NAdam": {"lr": 0.1},
    "Rprop": {"lr": 0.1},
    "Adafactor": {"lr": 0.1},
}


def stepped(name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    model = model.to(memory_format=torch.channels_last)
    optimizer = getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name])
    step(model, optimizer)
    return model, optimizer


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 2, 2, 2)).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_to_the_same_bits(name):
    (model, optimizer), (other, fresh) = stepped(name), stepped(name)
    step(model, optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    other.load_state_dict(model.state_dict())
    fresh.load_state_dict(checked_state(fresh, copy.deepcopy(optimizer.state_dict())))
    assert fresh.param_groups[0]["lr"] == 0.05
    for one in ((model, optimizer), (other, fresh)):
        step(*one)
    for left, right in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"Adafactor"}))
@pytest.mark.parametrize("strange", [torch.zeros(1), torch.zeros(9, 9), torch.zeros(2, 0), [torch.zeros(2)], "text"])
def test_moments_of_other_shapes_are_refused(name, strange):
    _, optimizer = stepped(name)
    state = optimizer.state_dict()["state"]
    for number in state:
        for key in state[number]:
            stored = copy.deepcopy(optimizer.state_dict())
            stored["state"][number][key] = strange
            with pytest.raises(CheckpointError):
                checked_state(optimizer, stored)


def test_a_moment_has_memory_for_all_its_numbers():
    _, optimizer = stepped("Adam")
    stored = copy.deepcopy(optimizer.state_dict())
    for moments in stored["state"].values():
        moments["exp_avg"] = torch.zeros(()).expand(moments["exp_avg"].shape)
    optimizer.load_state_dict(checked_state(optimizer, stored))
    for weight, moments in optimizer.state.items():
        assert moments["exp_avg"].stride() == weight.stride()
        assert moments["exp_avg"].untyped_storage().nbytes() >= 4 * weight.numel()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_flags_are_those_of_the_config(name):
    _, optimizer = stepped(name)
    stored = copy.deepcopy(optimizer.state_dict())
    group = stored["param_groups"][0]
    group |= {key: not group.get(key) for key in FLAGS} | {"unknown": "text"}
    before = {key: one for key, one in optimizer.param_groups[0].items() if key != "params"}
    optimizer.load_state_dict(checked_state(optimizer, stored))
    assert {key: one for key, one in optimizer.param_groups[0].items() if key != "params"} == before


def test_an_optimizer_of_another_model_is_refused():
    _, optimizer = stepped("Adam")
    stored = copy.deepcopy(optimizer.state_dict())
    stored["param_groups"][0]["params"].pop()
    with pytest.raises(CheckpointError):
        checked_state(optimizer, stored)
