"""Losses that are functions, and losses with weights of their own."""

import pytest
import torch
from torch import nn
from torch_runs import SGD, assert_same, fit, make_conf, weights

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.small_data import small_dataset, with_column
from rtrain.testing.workers import make_job
from rtrain.trainers.torch.plugin import Plugin

HERE = __name__
PLAIN = {**SGD, "momentum": 0.0}


def huber(output, target, delta=1.0):
    return nn.functional.huber_loss(output, target, delta=delta)


def make_huber(delta):
    return nn.HuberLoss(delta=delta)


class Weighed(nn.Module):
    def __init__(self, trains):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()), requires_grad=trains)

    def forward(self, output, target):
        return (-self.scale).exp() * nn.functional.cross_entropy(output, target) + self.scale


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def check(loss, data):
    Plugin().check(make_job(RtrainConf(trainer=make_conf(loss=loss, max_epochs=1)), data))


@pytest.mark.parametrize(
    ("name", "weighted"),
    [
        (f"{HERE}.huber", False),
        (f"{HERE}.make_huber", False),
        ("torch.nn.functional.huber_loss", False),
        ("torch.nn.functional.huber_loss", True),
    ],
)
def test_a_function_trains_what_the_module_of_it_does(tmp_path, name, weighted):
    data = small_dataset("regression", shape=(5,))
    data = with_column(data, "weight", lambda rows: torch.linspace(0.5, 3, rows).numpy()) if weighted else data
    for folder, target in (("function", name), ("module", "torch.nn.HuberLoss")):
        loss = {"_target_": target, "delta": 0.1}
        check(loss, data)
        fit(tmp_path / folder, make_conf(loss=loss, optimizer=PLAIN, max_epochs=1), dataset=data)
    assert_same(weights(tmp_path / "function"), weights(tmp_path / "module"))


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        ({"_target_": f"{HERE}.huber", "dleta": 0.1}, "no argument 'dleta'"),
        ({"_target_": f"{HERE}.make_huber"}, "make_huber needs delta"),
        ({"_target_": "torch.nn.HuberLoss", "_partial_": True}, "returns a partial, not a torch.nn.Module"),
        (
            {"_target_": "torch.nn.functional.nll_loss"},
            "trainer.loss: nll_loss is for classes, but small is for regression",
        ),
        (
            {"_target_": "torch.nn.functional.mse_loss", "weight": [1.0]},
            "trainer.loss: mse_loss can't compare .* 'list'",
        ),
        ({"delta": 0.1}, "trainer.loss: has no _target_"),
    ],
)
def test_what_is_no_loss_is_refused(loss, says):
    with pytest.raises(ConfigError, match=says):
        check(loss, small_dataset("regression", shape=(5,)))


@pytest.mark.parametrize("trains", [True, False])
def test_weights_of_a_loss_that_are_not_trained_are_told(tmp_path, trains):
    channel, _ = fit(tmp_path, make_conf(loss={"_target_": f"{HERE}.Weighed", "trains": trains}, max_epochs=1))
    texts = channel.notices
    assert ["1 of Weighed, such as scale, stay as they are" in text for text in texts] == [True] * trains
