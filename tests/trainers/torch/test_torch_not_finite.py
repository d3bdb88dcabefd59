"""Losses, gradients and weights that are not finite, with every optimizer step that a strategy of one rank takes."""

import math
from typing import ClassVar

import pytest
import torch
from not_finite_contract import NotFinite, dataset
from safetensors.torch import load_file
from torch import nn
from torch_runs import SGD, RecordingChannel, make_conf, make_worker

from rtrain.config.run_conf import FailureConf
from rtrain.errors import TrainingError
from rtrain.trainers.torch.loop import train, training
from rtrain.trainers.torch.optimization.finite import non_finite

HERE = __name__


class Root(nn.Module):
    """A linear model whose root has no finite gradient at 0."""

    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 1), nn.BatchNorm1d(4)
        self.root = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.inner(self.norm(x)).squeeze(-1) + (self.root * x[:, 0]).abs().sqrt()


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


class TestNotFinite(NotFinite):
    keys: ClassVar = {}

    def fit(self, folder, data, **run):
        channel = RecordingChannel()
        keys = {"model": {"_target_": f"{HERE}.Root"}, "batch_size": 10, "max_epochs": 1, **self.keys}
        train(make_worker(folder, make_conf(**keys), dataset=data, channel=channel, **run))
        return channel

    def arrays(self, checkpoint):
        return {name: one.numpy() for name, one in load_file(checkpoint / "model.safetensors").items()}


class TestNotFiniteWithClipping(TestNotFinite):
    keys: ClassVar = {"clip_norm": 1.0, "ema_decay": 0.9}


class TestNotFiniteOfAccelerate(TestNotFinite):
    keys: ClassVar = {"strategy": "accelerate", "accumulate_steps": 2, "batch_size": 5}


@pytest.mark.parametrize("strategy", ["fsdp", "ddp"])
def test_two_ranks_leave_out_a_step_whose_gradient_is_spoilt(world, tmp_path, strategy):
    """A gradient of fsdp lies on one of them only."""
    keys = {"strategy": strategy, "global_batch_size": 10, "max_epochs": 1}
    noted = world.run(_skip, str(tmp_path), make_conf(model={"_target_": f"{HERE}.Root"}, **keys), dataset("gradient"))
    assert noted == [1, 0], "rank 0 speaks for both"


def _skip(rank, folder, conf, data):
    from rtrain.config.targets import allow_list

    allow_list.FRAMEWORKS = allow_list.FRAMEWORKS | {HERE}
    channel = RecordingChannel()
    run = {"failure": FailureConf(nan_loss="skip"), "channel": channel, "rank": rank, "world_size": 2}
    with training(make_worker(folder, conf, dataset=data, **run)) as loop:
        loop.run()
        assert not loop.learner.non_finite()
    return sum("train/skipped_batch" in record.metrics for record in channel.events)


COSINE = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"}


def test_a_step_that_the_loss_scaling_leaves_out_moves_neither_schedule_nor_average(tmp_path):
    keys = {"batch_size": 10, "max_steps": 4, "ema_decay": 0.5, "scheduler": COSINE, "precision": "fp16"}
    conf = make_conf(model={"_target_": f"{HERE}.Root"}, **keys)
    worker = make_worker(tmp_path, conf, dataset=dataset("gradient", ()))
    with training(worker) as loop:
        learner, steps = loop.learner, loop.train_loader.steps(loop._next_pass())
        state = learner.state
        state.scaler._init_scale = 2.0**127
        learner.train_step(next(steps), 0)
        before = [one.clone() for one in state.model.parameters()]
        assert (learner.learning_rate(), int(state.ema.n_averaged), learner.optimizer_step.num_overflows) == (
            SGD["lr"],
            0,
            1,
        )
        state.scaler.update(1.0)
        learner.train_step(next(steps), 1)
        assert learner.learning_rate() < SGD["lr"]
        assert (int(state.ema.n_averaged), learner.optimizer_step.num_overflows) == (1, 0)
        assert any((one != old).any() for one, old in zip(state.model.parameters(), before, strict=True))


def test_fp16_gives_up_when_no_scale_helps(tmp_path):
    conf = make_conf(model={"_target_": f"{HERE}.Root"}, batch_size=10, max_epochs=3, precision="fp16")
    with pytest.raises(TrainingError, match="fp16"):
        train(
            make_worker(
                tmp_path, conf, dataset=dataset("gradient", range(60)), failure=FailureConf(max_skipped_steps=5)
            )
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_number_of_many_is_found_in_every_type(dtype, bad):
    good = torch.full((100,), torch.finfo(dtype).max / 4, dtype=dtype)
    spoilt = good.clone()
    spoilt[37] = bad
    tensors = {"good": good, "spoilt": spoilt, "empty": good[:0], "ints": torch.arange(3)}
    tensors["sparse"] = torch.sparse_coo_tensor([[1, 1]], torch.stack([good[0], spoilt[37]]), (5,))
    assert non_finite(tensors) == {"spoilt", "sparse"}
