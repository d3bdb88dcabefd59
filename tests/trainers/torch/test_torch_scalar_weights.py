"""Weights without a dimension: refused before the start by strategies that share the rows of weights, else trained."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch_runs import make_conf, make_worker, small_dataset

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError, RtrainError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import make_job
from rtrain.trainers.torch.checks import check_conf
from rtrain.trainers.torch.config import StrategyConf
from rtrain.trainers.torch.loop import train

HERE = __name__
PLAN = StrategyConf(tp_plan={"layers.0": "colwise", "layers.1": "rowwise"}, tp_size=2)
REFUSES = ("fsdp", "fsdp_tp")


class Scale(torch.nn.Module):
    """One factor, of the given shape."""

    def __init__(self, shape, learns=True):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(shape), requires_grad=learns)

    def forward(self, x):
        return x * self.factor


class Net(torch.nn.Module):
    """A network with some factors of one number.

    Args:
        shape: Of the factors.
        place: The model itself has one, or a block of it, or it is frozen.
        outlined: It can be built on the meta device.
    """

    def __init__(self, shape, place="model", outlined=True):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 8), torch.nn.Linear(8, 3)])
        self.scale = torch.nn.ModuleList([Scale(shape)]) if place == "block" else Scale(shape, place != "frozen")
        self.scales = [self.scale[0] if place == "block" else self.scale]
        self.start = None if outlined else torch.ones(2).sum().item()

    def forward(self, x):
        return self.layers[1](torch.relu(self.scales[0](self.layers[0](x.flatten(1)))))


def conf_of(strategy, **model):
    options = StrategyConf() if strategy in ("ddp", "fsdp", "accelerate") else PLAN
    node = {"_target_": f"{HERE}.Net", **model}
    return make_conf(model=node, strategy=strategy, strategy_options=options, max_epochs=1)


@pytest.mark.parametrize("strategy", REFUSES)
@pytest.mark.parametrize("place", ["model", "block", "frozen"])
def test_they_are_refused_with_their_names_where_rows_are_shared(strategy, place):
    conf = conf_of(strategy, shape=[], place=place)
    root = RtrainConf(trainer=conf, scaling=ScalingConf(num_workers=4), run=RunConf(name="test"))
    job = replace(make_job(root, small_dataset()), builder=Builder((f"{HERE}.*",)))
    with pytest.raises(ConfigError, match=rf"strategy={strategy} .*: scale\.(0\.)?factor\.") as caught:
        check_conf(job)
    assert "torch.ones(1)" in caught.value.hint


def fit_rank(rank, folder, conf):
    worker = make_worker(folder, conf, rank=rank, world_size=dist.get_world_size())
    worker.builder = Builder((f"{HERE}.*",))
    try:
        train(worker)
    except RtrainError as error:
        return str(error)
    return "trained"


@pytest.mark.parametrize("strategy", REFUSES)
def test_workers_refuse_those_of_a_model_that_only_they_can_build(world, tmp_path, strategy):
    for told in world.run(fit_rank, str(tmp_path), conf_of(strategy, shape=[], outlined=False)):
        assert "scale.factor" in told


@pytest.mark.parametrize(
    ("strategy", "shape"), [("ddp", []), ("accelerate", []), ("tp", []), ("fsdp", [1]), ("fsdp_tp", [1])]
)
def test_all_else_is_trained(world, tmp_path, strategy, shape):
    assert world.run(fit_rank, str(tmp_path), conf_of(strategy, shape=shape)) == ["trained", "trained"]
    assert latest_checkpoint(tmp_path) is not None
