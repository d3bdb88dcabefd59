"""The first step of a torch training, tried on the driver with two real rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from rtrain.datasets.base import EpochPlan, ResidentSplit
from rtrain.errors import TargetError
from rtrain.trainers.base import Job
from rtrain.trainers.sanity_check import is_at_hand, tried, try_rows
from rtrain.trainers.sanity_worker import sanity_worker
from rtrain.trainers.torch.build import build_metrics, build_model
from rtrain.trainers.torch.config import Conf, LoaderConf, StrategyConf
from rtrain.trainers.torch.inputs.batch_sizes import backward_rows
from rtrain.trainers.torch.inputs.loader import Step
from rtrain.trainers.torch.inputs.transforms import transformed_info
from rtrain.trainers.torch.learner import TorchLearner
from rtrain.trainers.torch.losses.of_tasks import fit_output
from rtrain.trainers.torch.memory_limit import small_models
from rtrain.trainers.torch.optimization.schedule import schedule_length
from rtrain.trainers.torch.process_settings import torch_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.sanity_check import try_one_row, try_outline
from rtrain.trainers.torch.strategies.ddp import DDP
from rtrain.trainers.worker import Worker


def try_first_step(job: Job) -> None:
    """Build what training builds, and take its first step, and an evaluation, with the first rows.

    Raises:
        RtrainError: A part fails; names its key.
    """
    worker, num_ranks = (
        sanity_worker(job),
        job.conf.trainer.num_with_own_rows(max(1, int(job.conf.scaling.num_workers))),
    )
    conf: Conf = worker.conf
    if job.conf.scaling.use_gpu:
        worker.conf = replace(conf, precision="fp32")
    with torch_settings(worker, deterministic=conf.deterministic):
        try_rows(worker, max(_sizes(worker, num_ranks)), lambda rows: _try(rows, worker, num_ranks))


def _try(rows: ResidentSplit, worker: Worker, num_ranks: int) -> None:
    """Take the step; of a model that is too large call its outline alone, on the meta device."""
    with small_models() as found:
        _first_step(rows, worker, num_ranks)
    if found.found_large:
        info = transformed_info(worker.conf, worker.data.info, worker.builder)
        with torch.device("meta"):
            model = build_model(worker.conf.model, info, worker.builder)
        _check_channels(worker.conf, model)
        try_outline(model, worker)


def _sizes(worker: Worker, num_ranks: int) -> set[int]:
    return backward_rows(worker.data.splits["train"].num_rows, worker.conf, num_ranks)


def _first_step(rows: ResidentSplit, worker: Worker, num_ranks: int) -> None:
    """Train on the rows alone, as long as the run on all of them would, so that its schedule is as long."""
    conf, info, train = worker.conf, worker.data.info, worker.data.splits["train"]
    steps_per_epoch = math.ceil(train.num_rows / conf.rows_per_step(num_ranks))
    length = schedule_length(conf, steps_per_epoch)
    small = replace(worker, conf=_conf_of(conf, rows.num_rows, length))
    small.dataset = replace(worker.data, splits={**worker.data.splits, "train": rows})
    ranks = TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    learner = TorchLearner(small, DDP(small.conf, ranks))
    _check_channels(conf, learner.state.model)
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=rows.num_rows, seed=worker.run.seed, shuffle=False)
    step = next(iter(learner.open_loader(rows, info, ranks).steps(plan)))
    _try_loss_and_metrics(learner, step, small)
    with tried("the first step", info, f"rows of shape {info.input_shape}"):
        learner.train_step(step, 0)
    if 1 in _sizes(worker, num_ranks) and is_at_hand(train) and not (conf.sync_batchnorm and num_ranks > 1):
        try_one_row(learner.state.model, step.x, worker, num_ranks)


def _check_channels(conf: Conf, model: nn.Module) -> None:
    """Refuse the memory format of images for a model that has no weights for them: it makes rows flat."""
    if conf.channels_last and not any(is_lazy(weight) or weight.dim() == 4 for weight in model.parameters()):
        raise TargetError(
            "trainer.channels_last",
            f"has no effect: {conf.model['_target_']} has no convolutions",
            "Leave it out, or use an image model: trainer/model=resnet",
        )


def _conf_of(conf: Conf, num_rows: int, length: int | None) -> Conf:
    """Return the conf of the same training on a few rows, in a single process."""
    alone: dict[str, Any] = {"strategy": "ddp", "strategy_options": StrategyConf(), "sync_batchnorm": False}
    alone["loader"] = LoaderConf()
    batch: dict[str, Any] = {"batch_size": num_rows, "global_batch_size": None, "accumulate_steps": 1}
    seconds = conf.max_seconds if length is None else None
    return replace(conf, compile=False, **alone, **batch, max_epochs=None, max_steps=length, max_seconds=seconds)


def _try_loss_and_metrics(learner: TorchLearner, step: Step, worker: Worker) -> None:
    """Compute the loss as training does, and what an evaluation measures."""
    conf, info, loss = worker.conf, worker.data.info, learner.optimizer_step.loss
    with torch.no_grad():
        output, target = fit_output(learner.state.model(step.x), step.y)
    shapes = f"outputs of shape {tuple(output.shape)} and targets of shape {tuple(target.shape)}"
    with tried("trainer.loss", info, shapes):
        loss(output, target)
    for name, metric in build_metrics(conf, info, worker.builder).items():
        with tried(f"trainer.metrics.{name}", info, shapes):
            metric.update(output, target)
            metric.compute()
    learner.evaluate([step])
