"""A torch module as the loop of epochs sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from rtrain.datasets.base import DatasetInfo, Split
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.loops.callbacks.build import build_callbacks
from rtrain.trainers.loops.collectives import Ranks
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.progress import FILE_NAME
from rtrain.trainers.torch.build import build_loss, build_metrics, build_state
from rtrain.trainers.torch.checkpoint.state import TRAINING
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.evaluation import Evaluator
from rtrain.trainers.torch.inputs.loader import Step, TensorLoader
from rtrain.trainers.torch.inputs.transforms import open_loader
from rtrain.trainers.torch.losses.own import untrained
from rtrain.trainers.torch.optimization.finite import non_finite, weights_of
from rtrain.trainers.torch.optimization.schedule import schedule_length
from rtrain.trainers.torch.optimization.step import OptimizerStep
from rtrain.trainers.torch.strategies.base import Strategy
from rtrain.trainers.trained import read_about
from rtrain.trainers.worker import Worker


class TorchLearner(Learner):
    """Module, optimizer and what belongs to them on one rank; a strategy says how ranks share the work."""

    hint = "Lower trainer.optimizer.lr, set trainer.clip_norm=1, or train with trainer.precision=fp32."

    def __init__(self, worker: Worker, strategy: Strategy) -> None:
        conf: Conf = worker.conf
        info, data = worker.data.info, strategy.data
        steps_per_epoch = math.ceil(worker.data.splits["train"].num_rows / conf.rows_per_step(data.size))
        self.strategy, self.savers = strategy, strategy.savers
        self._conf, self._data = conf, data
        self._train, self._builder = worker.data.splits["train"], worker.builder
        loss = build_loss(conf, worker.data, worker.builder).to(data.device)
        if note := untrained(loss):
            worker.notice(note)
        self.state = build_state(worker, strategy, steps_per_epoch, loss)
        self.optimizer_step = OptimizerStep(
            conf,
            info,
            strategy,
            self.state,
            loss,
            schedule_length(conf, steps_per_epoch),
            failure=worker.run.failure,
        )
        metrics = build_metrics(conf, info, worker.builder)
        self._evaluator = Evaluator(loss, data, conf.precision, metrics=metrics, task=info.task, notice=worker.notice)
        self.optimizer_step.wrapped.train()

    def open_loader(self, split: Split, info: DatasetInfo, ranks: Ranks) -> TensorLoader:
        """Return the rows as tensors on this rank's device."""
        return open_loader(split, info, self._data, self._conf, self._builder, training=split is self._train)

    def seed(self, number: int) -> None:
        """Seed torch, on the device too."""
        self._data.seed(number)

    def train_step(self, batch: Step, step: int) -> tuple[Tensor, float]:
        """Do one optimizer step; its loss is computed while this returns."""
        return self.optimizer_step.take(batch)

    def step_losses(self, taken: Sequence[tuple[Tensor, float]]) -> list[tuple[float, float]]:
        """Return the sums; waits for the device."""
        losses, weights = zip(*taken, strict=True)
        return list(zip(self._data.sum(torch.stack(losses)), weights, strict=True))

    def evaluate(self, batches: Iterable[Step]) -> dict[str, float]:
        """Return the metrics of the averaged weights if there are any, else of those that train."""
        found = self._evaluator.run(self.state.evaluated_model(), batches)
        self.optimizer_step.wrapped.train()
        return found

    def sync(self) -> None:
        """Give every rank the buffers of rank 0."""
        self.state.share_buffers(self.strategy.ranks)

    def non_finite(self) -> set[str]:
        """Return the names of weights that are not finite."""
        return non_finite(weights_of(self.state.model))

    def snapshot(self) -> Writer:
        """Copy weights and training state."""
        return self.strategy.snapshot(self.state)

    def load(self, folder: Path) -> None:
        """Take weights and training state, whatever number of ranks wrote them if the strategy can."""
        self.strategy.load(self.state, folder)
        before = read_about(folder).trainer.get("optimizer") or {}
        self.state.change_optimizer(before, self._conf.optimizer or {})

    def load_weights(self, folder: Path) -> None:
        """Take the weights, the averaged ones if there are any."""
        self.strategy.init(self.state, folder)

    def progress(self, folder: Path) -> EpochProgress:
        """Return where training was; older checkpoints store it with the optimizer's state."""
        if (folder / FILE_NAME).exists():
            return super().progress(folder)
        stored = torch.load(folder / TRAINING, map_location="cpu", mmap=True, weights_only=True)
        return EpochProgress(**stored["progress"], metrics=dict(stored["metrics"]))

    def describe(self) -> Mapping[str, Any]:
        """Return device, threads and the size of the model."""
        return {
            "device": str(self._data.device),
            "num_threads": torch.get_num_threads(),
            "num_parameters": self.strategy.num_parameters(self.state.model),
        }

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""
        return float(self.state.optimizer.param_groups[0]["lr"])

    def callbacks(self) -> list[WorkerCallback]:
        """Build the callbacks of the config."""
        return build_callbacks(self._conf.callbacks, self._builder)

    def learned(self) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        """Return the module, without what a strategy wraps around it, and the optimizer."""
        return self.state.model, self.state.optimizer

    def on_evaluation(self, value: float | None) -> None:
        """Move a schedule that watches a metric."""
        if isinstance(self.state.scheduler, ReduceLROnPlateau) and value is not None:
            self.state.scheduler.step(value)

    def end_epoch(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Move a schedule that goes by epochs."""
        if self._conf.scheduler_interval == "epoch":
            self.optimizer_step.move_schedule()
        return ""
