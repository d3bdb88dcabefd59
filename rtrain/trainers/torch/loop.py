"""The declared train loop: epochs of optimizer steps, evaluations and checkpoints, the same on every rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from rtrain.datasets.base import DatasetInfo, Pass
from rtrain.errors import TrainingError
from rtrain.trainers.from_dataset import evaluated_split, monitor_of
from rtrain.trainers.stopping import SIGNALS, StopSignal
from rtrain.trainers.torch.build import (
    build_loss,
    build_metrics,
    build_state,
    schedule_length,
)
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.data import Feed
from rtrain.trainers.torch.evaluation import Evaluation
from rtrain.trainers.torch.meter import WAY_OUT, Meter
from rtrain.trainers.torch.settings import torch_settings
from rtrain.trainers.torch.state import TrainState, seed_step
from rtrain.trainers.torch.step import OptimizerStep
from rtrain.trainers.torch.strategies import make_strategy, process_group
from rtrain.trainers.torch.strategies.base import Shards, Strategy
from rtrain.trainers.torch.world import World
from rtrain.trainers.worker import Monitor, Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    with torch_settings(worker), process_group(worker):
        loop = Loop.build(worker)
        try:
            loop.resume()
            loop.run()
        finally:
            loop.strategy.close()


@dataclass
class Loop:
    """The parts of one training on one rank."""

    worker: Worker
    conf: Conf
    info: DatasetInfo
    strategy: Strategy
    world: World
    """All ranks."""
    data: World
    """The ranks with rows of their own."""
    state: TrainState
    optimizer_step: OptimizerStep
    feed: Feed
    split: str | None
    """Name of the evaluated split."""
    evaluation: Evaluation | None
    monitor: Monitor
    stop: StopSignal
    saved_step: int = -1
    meter: Meter = field(init=False)

    @classmethod
    def build(cls, worker: Worker) -> Loop:
        """Build everything that ``worker.conf`` declares."""
        conf, dataset = worker.conf, worker.dataset
        assert dataset is not None, "checked by the plugin"
        world, info = World.of(worker), dataset.info
        strategy = make_strategy(conf, world)
        data = strategy.data
        feed = Feed(dataset.splits["train"], info, data, conf.channels_last)
        steps_per_epoch = feed.num_steps(conf.rows_per_step(data.size))
        state = build_state(worker, strategy, steps_per_epoch)
        loss = build_loss(conf, info, worker.allow).to(world.device)
        split = evaluated_split(conf.evaluate_split, info)
        evaluation = None
        if split is not None:
            evaluation = Evaluation(
                Feed(dataset.splits[split], info, data, conf.channels_last),
                loss,
                data,
                conf,
                metrics=build_metrics(conf, info, worker.allow),
                task=info.task,
            )
        return cls(
            worker=worker,
            conf=conf,
            info=info,
            strategy=strategy,
            world=world,
            data=data,
            state=state,
            optimizer_step=OptimizerStep(conf, info, strategy, state, loss, schedule_length(conf, steps_per_epoch)),
            feed=feed,
            split=split,
            evaluation=evaluation,
            monitor=monitor_of(conf.evaluate_split, info, worker.run.checkpoint),
            stop=StopSignal(worker, world, conf.max_seconds),
        )

    def resume(self) -> None:
        """Go back to the newest checkpoint of this run, if there is one."""
        folder = self.worker.resume_dir()
        if folder is not None:
            self.strategy.load(self.state, folder)
            progress = self.state.progress
            self.monitor.best = progress.best
            self.saved_step = progress.step
            self.stop = StopSignal(self.worker, self.world, self.conf.max_seconds, progress.seconds)
        self.state.expect_rows_per_step(self.conf.rows_per_step(self.data.size))

    def run(self) -> None:
        """Train epoch after epoch, and leave a checkpoint of where it ends."""
        self._describe()
        self.meter = self._new_meter()
        reason = self._limit()
        while not reason:
            reason = self._train_epoch() or self._limit()
        if reason not in SIGNALS and self.state.progress.evaluated_step != self.state.progress.step:
            self._evaluate()
        self._save()
        self._describe()

    def _train_epoch(self) -> str:
        """Train one epoch, or what is left of it; return why training ends inside of it, or an empty string."""
        progress = self.state.progress
        one = self._next_pass()
        self.meter = self._new_meter()
        self.optimizer_step.wrapped.train()
        for step in self.feed.steps(one):
            reason = self._between_steps()
            if reason:
                return reason
            seed_step(one.seed, one.rank, progress.step, self.world.device)
            loss = self.optimizer_step.take(step)
            progress.step += 1
            progress.step_in_epoch += 1
            self.meter.add(loss, step)
            if progress.step % self.worker.run.log_every_steps == 0:
                self._report(self.meter.metrics())
        if one.skip_steps == 0:
            self._check_rows()
        self._end_epoch()
        return ""

    def _check_rows(self) -> None:
        """Fail if rows of the epoch that ends came twice or never."""
        self.meter.look()
        seen, there = self.state.progress.rows, self.feed.num_rows
        if seen != there:
            raise TrainingError(
                f"epoch {self.state.progress.epoch} had {seen} rows, but the train split has {there}.",
                "Its files changed while they were read, or the dataset's source gives rows twice or never.",
            )

    def _new_meter(self) -> Meter:
        steps_per_epoch = self.feed.num_steps(self.conf.rows_per_step(self.data.size))
        return Meter(self.worker, self.data, self.state, steps_per_epoch)

    def _next_pass(self) -> Pass:
        progress = self.state.progress
        return Pass(
            rank=self.data.rank,
            world_size=self.data.size,
            global_batch_size=self.conf.rows_per_step(self.data.size),
            seed=self.worker.run.seed,
            epoch=progress.epoch,
            skip_steps=progress.step_in_epoch,
        )

    def _between_steps(self) -> str:
        """Do what is due after the step before, inside an epoch; return why training ends here, or an empty string."""
        progress = self.state.progress
        if progress.step_in_epoch > 0:
            if _is_due(self.conf.eval_every_steps, progress.step):
                self._evaluate()
            if _is_due(self.worker.run.checkpoint.every_steps, progress.step):
                self._save()
        return self._limit() or self.stop.agreed(progress.step)

    def _limit(self) -> str:
        """Return which limit is reached, or an empty string."""
        progress, conf = self.state.progress, self.conf
        if conf.max_epochs is not None and progress.epoch >= conf.max_epochs:
            return "max_epochs"
        if conf.max_steps is not None and progress.step >= conf.max_steps:
            return "max_steps"
        patience = math.inf if conf.early_stopping is None else conf.early_stopping.patience
        return "early stopping" if progress.bad_evaluations >= patience else ""

    def _end_epoch(self) -> None:
        """Evaluate, report and save as far as they are due, and move on to the next epoch."""
        progress, conf, cadence = self.state.progress, self.conf, self.worker.run.checkpoint
        progress.epoch += 1
        progress.step_in_epoch = 0
        found = self.meter.epoch_metrics()
        due = _is_due(conf.eval_every_epochs, progress.epoch) or _is_due(conf.eval_every_steps, progress.step)
        if due or self._limit():
            self._evaluate(found)
        else:
            self._report(found)
        if conf.scheduler_interval == "epoch":
            self.optimizer_step.move_schedule()
        if _is_due(cadence.every_epochs, progress.epoch) or _is_due(cadence.every_steps, progress.step):
            self._save()

    def _report(self, metrics: dict[str, float]) -> None:
        progress = self.state.progress
        self.state.metrics.update(metrics)
        self.worker.report(metrics, step=progress.step, epoch=progress.epoch)

    def _evaluate(self, also: dict[str, float] | None = None) -> None:
        """Evaluate and report, together with ``also``."""
        progress, found = self.state.progress, dict(also or {})
        if progress.evaluated_step == progress.step:
            self._report(found)
            return
        if self.evaluation is not None:
            self.meter.look()
            with self.meter.paused():
                self.state.share_buffers(self.world)
                values = self.evaluation.run(self.state.evaluated_model())
            self.optimizer_step.wrapped.train()
            if math.isnan(values["loss"]):
                raise TrainingError(f"{self.split}/loss is not a number at step {progress.step}.", WAY_OUT)
            found |= {f"{self.split}/{name}": value for name, value in values.items()}
        progress.evaluated_step = progress.step
        if found:
            self._report(found)
            self._judge()

    def _judge(self) -> None:
        """Let early stopping, and a schedule that watches a metric, see the new metrics."""
        value = self.state.metrics.get(str(self.monitor.name))
        if isinstance(self.state.scheduler, ReduceLROnPlateau) and value is not None:
            self.state.scheduler.step(value)
        early, progress = self.conf.early_stopping, self.state.progress
        if early is None:
            return
        name = early.monitor or self.monitor.name
        mode = early.mode if early.mode != "auto" else Monitor.by_name(name).mode
        smaller = self.state.metrics.get(str(name), math.nan) * (1 if mode == "min" else -1)
        best = math.inf if progress.early_best is None else progress.early_best
        if smaller < best - early.min_delta:
            progress.early_best, progress.bad_evaluations = smaller, 0
        else:
            progress.bad_evaluations += 1

    def _save(self) -> None:
        """Write a checkpoint of this step, once."""
        progress = self.state.progress
        if self.saved_step == progress.step:
            return
        self.meter.look()
        with self.meter.paused():
            self.state.share_buffers(self.world)
            best = progress.evaluated_step == progress.step and self.monitor.improves(self.state.metrics)
            progress.best, progress.seconds = self.monitor.best, self.stop.seconds
            facts: dict[str, Any] = {"step": progress.step, "epoch": progress.epoch, "metrics": self.state.metrics}
            shards = Shards(self.strategy, self.state)
            if self.strategy.sharded:
                self.worker.save_sharded_checkpoint(shards, **facts, best=best, monitor=self.monitor)
            else:
                self.worker.save_checkpoint(shards.write, **facts, best=best, monitor=self.monitor)
        self.saved_step = progress.step

    def _describe(self) -> None:
        """Tell the manifest where and on how much this rank trains."""
        num_rows = {"train": self.feed.num_own_rows(self._next_pass())}
        if self.evaluation is not None:
            num_rows[str(self.split)] = self.evaluation.num_own_rows()
        self.worker.describe(
            {
                "device": str(self.world.device),
                "num_threads": torch.get_num_threads(),
                "num_parameters": self.strategy.num_parameters(self.state.model),
                "num_rows": {
                    name: count if self.data.counts else 0 for name, count in num_rows.items() if count is not None
                },
            }
        )


def _is_due(every: int | None, count: int) -> bool:
    return every is not None and count % every == 0
