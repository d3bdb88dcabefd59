"""Adam moves all weights in one kernel on a CPU, where that is the fastest way and nothing else was chosen."""

from types import SimpleNamespace

import pytest
import torch
from exactness import assert_same_contents
from torch import nn
from torch_runs import assert_same, fit, make_conf

from rtrain.config.targets.builder import Builder
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.torch.build import build_optimizer


def adam(**keys):
    return {"_target_": "torch.optim.AdamW", "lr": 0.01, **keys}


def built(node, model=None, *, sharded=False):
    strategy = SimpleNamespace(sharded=sharded, split_groups=lambda optimizer: None)
    return build_optimizer(make_conf(optimizer=node), model or nn.Linear(3, 2), strategy, Builder())


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_one_kernel_moves_all_weights(kind):
    assert built({"_target_": f"torch.optim.{kind}", "lr": 0.01}).defaults["fused"] is True


@pytest.mark.parametrize("keys", [{"fused": False}, {"foreach": True}, {"differentiable": True}])
def test_the_config_chooses_another_way(keys):
    assert not built(adam(**keys)).defaults["fused"]


def make_adam(weights, lr):
    """Takes no other argument."""
    return torch.optim.AdamW(weights, lr=lr)


def test_a_function_that_makes_an_optimizer_gets_what_the_config_says():
    node = {"_target_": f"{__name__}.make_adam", "lr": 0.1}
    strategy = SimpleNamespace(sharded=False, split_groups=lambda optimizer: None)
    found = build_optimizer(make_conf(optimizer=node), nn.Linear(3, 2), strategy, Builder((f"{__name__}.*",)))
    assert not found.defaults["fused"]


@pytest.mark.parametrize(
    ("node", "model", "sharded"),
    [
        ({"_target_": "torch.optim.SGD", "lr": 0.1}, None, False),
        ({"_target_": "torch.optim.NAdam", "lr": 0.1}, None, False),
        (adam(), None, True),
        (adam(), nn.Linear(3, 2, dtype=torch.complex64), False),
        (adam(), nn.Linear(3, 2, device="meta"), False),
    ],
)
def test_torch_decides_elsewhere(node, model, sharded):
    assert not built(node, model, sharded=sharded).defaults.get("fused")


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_the_weights_are_those_of_torchs_usual_way(tmp_path, precision):
    keys = {"precision": precision, "clip_norm": 1.0, "max_epochs": 3, "batch_size": 32}
    _, found = fit(tmp_path / "fused", make_conf(optimizer=adam(), **keys))
    _, expected = fit(tmp_path / "usual", make_conf(optimizer=adam(fused=False), **keys))
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if precision == "fp32" else {"rtol": 0.05, "atol": 0.01}
    assert_same(found, expected, **tolerance)


@pytest.mark.parametrize(("before", "now"), [(False, None), (None, False)])
def test_a_run_may_change_the_way(tmp_path, before, now):
    first, then = (make_conf(optimizer=adam(**({} if one is None else {"fused": one}))) for one in (before, now))
    fit(tmp_path / "whole", first)
    fit(tmp_path / "parts", first, channel=RecordingChannel(stop_after=2))
    fit(tmp_path / "parts", then)
    assert_same_contents(tmp_path / "whole", tmp_path / "parts", only=("model",), rtol=1e-4, atol=1e-5)
