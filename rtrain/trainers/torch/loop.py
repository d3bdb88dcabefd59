"""The declared train loop: epochs of optimizer steps, evaluations and checkpoints, the same on every rank."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rtrain.config.targets import build
from rtrain.datasets.base import Pass
from rtrain.errors import TrainingError
from rtrain.trainers.torch.build import (
    build_loss,
    build_model,
    build_optimizer,
    build_scheduler,
    evaluated_split,
    fill_from_dataset,
    monitor_of,
)
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.data import Feed, Step
from rtrain.trainers.torch.evaluation import Evaluation, fit_target
from rtrain.trainers.torch.state import TrainState, describe_model, make_ema, random_state
from rtrain.trainers.torch.world import StopSignal, World
from rtrain.trainers.worker import Monitor, Worker

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PROGRESS_SECONDS = 0.1


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    torch.set_num_threads(worker.num_threads)
    torch.manual_seed(worker.run.seed)
    torch.use_deterministic_algorithms(worker.conf.deterministic, warn_only=True)
    loop = Loop.build(worker)
    folder = worker.resume_dir()
    if folder is not None:
        loop.state.load(folder, loop.world)
        loop.monitor.best = loop.state.progress.best
    else:
        torch.manual_seed(worker.run.seed + 1 + worker.rank)  # dropout differs between ranks
    loop.run()


@dataclass
class Loop:
    """The parts of one training on one rank."""

    worker: Worker
    conf: Conf
    world: World
    state: TrainState
    wrapped: nn.Module
    """The model as training calls it: distributed, compiled."""
    loss: nn.Module
    feed: Feed
    split: str | None
    """Name of the evaluated split."""
    evaluation: Evaluation | None
    monitor: Monitor
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest value of each metric."""
    evaluated_at: int = -1
    saved_at: int = -1

    @classmethod
    def build(cls, worker: Worker) -> Loop:
        """Build everything that ``worker.conf`` declares."""
        conf, dataset = worker.conf, worker.dataset
        assert dataset is not None, "checked by the plugin"
        world = World.of(worker)
        info = dataset.info
        feed = Feed(dataset.splits["train"], info, world, conf.channels_last)
        state = _build_state(worker, world, feed.num_steps(_rows_per_step(conf, world)))
        loss = build_loss(conf, info, worker.allow).to(world.device)
        split = evaluated_split(conf, info)
        evaluation = None
        if split is not None:
            held_out = Feed(dataset.splits[split], info, world, conf.channels_last)
            metrics = {
                name: build(fill_from_dataset(node, info), f"trainer.metrics.{name}", worker.allow)
                for name, node in conf.metrics.items()
            }
            evaluation = Evaluation(held_out, loss, world, conf.eval_batch_size, metrics)
        return cls(
            worker=worker,
            conf=conf,
            world=world,
            state=state,
            wrapped=_wrap(state.model, conf, world),
            loss=loss,
            feed=feed,
            split=split,
            evaluation=evaluation,
            monitor=monitor_of(conf, info, worker.run.checkpoint),
        )

    def run(self) -> None:
        """Train epoch after epoch, and leave a checkpoint of where it ends."""
        self.stop = StopSignal(self.worker, self.world, self.conf.max_seconds)
        parameters = sum(parameter.numel() for parameter in self.state.model.parameters())
        threads = torch.get_num_threads()
        facts = {"device": str(self.world.device), "num_threads": threads, "num_parameters": parameters}
        self.worker.describe(facts)
        reason = ""
        while not reason and not self._is_done():
            reason = self._train_epoch()
        if reason not in ("interrupted", "preempted") and self.evaluated_at != self.state.progress.step:
            self._evaluate()
        self._save()

    def _train_epoch(self) -> str:
        """Train one epoch, or what is left of it; return why training ends, or an empty string."""
        progress = self.state.progress
        rows_per_step = _rows_per_step(self.conf, self.world)
        one = Pass(
            rank=self.world.rank,
            world_size=self.world.size,
            global_batch_size=rows_per_step,
            seed=self.worker.run.seed,
            epoch=progress.epoch,
            skip_steps=progress.step_in_epoch,
        )
        meter = Meter(self.worker, self.world, self.state, self.feed.num_steps(rows_per_step))
        for step in self.feed.steps(one):
            meter.add(self._step(step), step)
            progress.step += 1
            progress.step_in_epoch += 1
            if progress.step % self.worker.run.log_every_steps == 0:
                self._report(meter.metrics())
            stopped = self._after_step()
            if stopped:
                return stopped
        progress.epoch += 1
        progress.step_in_epoch = 0
        return self._after_epoch(meter)

    def _step(self, step: Step) -> Tensor:
        """Do one optimizer step and return the sum of this rank's row losses.

        The gradient is that of the mean over all rows of all ranks: each part's mean loss is weighted by its share of
        the rows, because DDP averages gradients over ranks whatever rows they had.
        """
        self.wrapped.train()
        total = torch.zeros((), device=self.world.device)
        xs, ys = (torch.tensor_split(rows, self.conf.accumulate_steps) for rows in (step.x, step.y))
        for number, (x, y) in enumerate(zip(xs, ys, strict=True)):
            last = number == len(xs) - 1
            hold = isinstance(self.wrapped, DistributedDataParallel) and not last
            with self.wrapped.no_sync() if hold else contextlib.nullcontext():  # type: ignore[operator]
                total += self._backward(x, y, step)
        self._update()
        return total

    def _backward(self, x: Tensor, y: Tensor, step: Step) -> Tensor:
        rows = len(y)
        if rows == 0:
            self._backward_without_rows(step)
            return torch.zeros((), device=self.world.device)
        with self._autocast():
            loss = self.loss(fit_target(self.wrapped(x), y), y)
        mean = getattr(self.loss, "reduction", "mean") != "sum"
        share = (rows if mean else 1) * self.world.size / step.num_global
        self.state.scaler.scale(loss * share).backward()
        detached: Tensor = loss.detach().float()
        return detached * rows if mean else detached

    def _backward_without_rows(self, step: Step) -> None:
        """Take part in the exchange of gradients with zeros; batch statistics are left alone."""
        self.wrapped.eval()
        shape = (1, *step.x.shape[1:])
        with self._autocast():
            output = self.wrapped(torch.zeros(shape, device=self.world.device, dtype=step.x.dtype))
        self.state.scaler.scale(output.sum() * 0).backward()
        self.wrapped.train()

    def _autocast(self) -> torch.autocast:
        dtype = DTYPES[self.conf.precision]
        return torch.autocast(self.world.device.type, dtype=dtype, enabled=dtype != torch.float32)

    def _update(self) -> None:
        """Clip the gradients and move weights, schedule and average on."""
        state = self.state
        if self.conf.clip_norm is not None or self.conf.clip_value is not None:
            state.scaler.unscale_(state.optimizer)
        if self.conf.clip_norm is not None:
            nn.utils.clip_grad_norm_(state.model.parameters(), self.conf.clip_norm)
        if self.conf.clip_value is not None:
            nn.utils.clip_grad_value_(state.model.parameters(), self.conf.clip_value)
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.optimizer.zero_grad(set_to_none=True)
        if state.scheduler is not None and self.conf.scheduler_interval == "step":
            state.scheduler.step()
        if state.ema is not None:
            state.ema.update_parameters(state.model)

    def _after_step(self) -> str:
        step = self.state.progress.step
        if self.conf.eval_every_steps and step % self.conf.eval_every_steps == 0 and self._evaluate():
            return "early stopping"
        every = self.worker.run.checkpoint.every_steps
        if every and step % every == 0:
            self._save()
        if self.conf.max_steps is not None and step >= self.conf.max_steps:
            return "max_steps"
        return self.stop.agreed(step)

    def _after_epoch(self, meter: Meter) -> str:
        epoch = self.state.progress.epoch
        if self.state.scheduler is not None and self.conf.scheduler_interval == "epoch":
            self.state.scheduler.step()
        last = self.conf.max_epochs is not None and epoch >= self.conf.max_epochs
        found = meter.epoch_metrics()
        enough = False
        if self.conf.eval_every_epochs and (epoch % self.conf.eval_every_epochs == 0 or last):
            enough = self._evaluate(found)
        else:
            self._report(found)
        every = self.worker.run.checkpoint.every_epochs
        if every and (epoch % every == 0 or last):
            self._save()
        return "early stopping" if enough else ""

    def _is_done(self) -> bool:
        progress, conf = self.state.progress, self.conf
        over = conf.max_epochs is not None and progress.epoch >= conf.max_epochs
        return over or (conf.max_steps is not None and progress.step >= conf.max_steps)

    def _report(self, metrics: dict[str, float]) -> None:
        progress = self.state.progress
        self.metrics.update(metrics)
        self.worker.report(metrics, step=progress.step, epoch=progress.epoch)
        bad = [name for name, value in metrics.items() if name.endswith("loss") and not math.isfinite(value)]
        if bad:
            raise TrainingError(
                f"{bad[0]} is {metrics[bad[0]]} at step {progress.step}.",
                "Lower optimizer.lr, set trainer.clip_norm=1, or train in fp32.",
            )

    def _evaluate(self, also: dict[str, float] | None = None) -> bool:
        """Evaluate and report, with ``also``; tell whether early stopping has seen enough."""
        progress = self.state.progress
        found = dict(also or {})
        if self.evaluation is not None:
            values = self.evaluation.run(self.state.evaluated_model())
            found |= {f"{self.split}/{name}": value for name, value in values.items()}
        if found:
            self._report(found)
        self.evaluated_at = progress.step
        return self._seen_enough()

    def _seen_enough(self) -> bool:
        early, progress = self.conf.early_stopping, self.state.progress
        if early is None:
            return False
        name = early.monitor or self.monitor.name
        mode = Monitor(name, early.mode) if early.mode != "auto" else Monitor.by_name(name)
        value = self.metrics[str(name)] * (1 if mode.mode == "min" else -1)
        if progress.early_best is None or value < progress.early_best - early.min_delta:
            progress.early_best, progress.bad_evaluations = value, 0
        else:
            progress.bad_evaluations += 1
        return progress.bad_evaluations >= early.patience

    def _save(self) -> None:
        """Write a checkpoint of this step, once."""
        progress = self.state.progress
        if self.saved_at == progress.step:
            return
        best = self.evaluated_at == progress.step and self.monitor.improves(self.metrics)
        progress.best = self.monitor.best
        states = self.world.gather(random_state())
        info = self.worker.dataset.info if self.worker.dataset else None
        assert info is not None, "checked by the plugin"
        description = describe_model(fill_from_dataset(self.conf.model, info), info, self.state.ema is not None)
        self.worker.save_checkpoint(
            lambda folder: self.state.save(folder, states, description),
            step=progress.step,
            epoch=progress.epoch,
            metrics=self.metrics,
            best=best,
            monitor=self.monitor,
        )
        self.saved_at = progress.step


class Meter:
    """Loss and speed since the last report, and of the epoch."""

    def __init__(self, worker: Worker, world: World, state: TrainState, steps_per_epoch: int) -> None:
        self._worker, self._world, self._state = worker, world, state
        self._steps_per_epoch = steps_per_epoch
        self._loss = torch.zeros((), dtype=torch.float64, device=world.device)
        self._rows = self._rows_of_all = self._rows_shown = 0
        self._began = self._shown = time.monotonic()

    def add(self, loss: Tensor, step: Step) -> None:
        """Count one step; tell the display now and then."""
        self._loss += loss
        self._rows += len(step.y)
        self._rows_of_all += step.num_global
        self._rows_shown += step.num_global
        now = time.monotonic()
        if now - self._shown >= PROGRESS_SECONDS:
            progress = self._state.progress
            self._worker.progress(
                step=progress.step + 1,
                epoch=progress.epoch,
                steps_per_epoch=self._steps_per_epoch,
                rows=self._rows_shown,
            )
            self._shown, self._rows_shown = now, 0

    def metrics(self) -> dict[str, float]:
        """Return loss, rate and speed since the last call, over all ranks; every rank calls it at the same step."""
        loss, rows = self._world.sum([float(self._loss), self._rows]).tolist()
        self._state.progress.loss_sum += float(self._loss)
        self._state.progress.rows += self._rows
        seconds = time.monotonic() - self._began
        speed = self._rows_of_all / max(seconds, 1e-9)
        self._loss.zero_()
        self._rows = self._rows_of_all = 0
        self._began = time.monotonic()
        rate = self._state.optimizer.param_groups[0]["lr"]
        return {"train/loss": loss / max(rows, 1), "train/lr": float(rate), "train/rows_per_second": speed}

    def epoch_metrics(self) -> dict[str, float]:
        """Return the mean loss of the epoch that ends."""
        if self._rows_of_all:
            self.metrics()
        progress = self._state.progress
        loss, rows = self._world.sum([progress.loss_sum, progress.rows]).tolist()
        progress.loss_sum, progress.rows = 0.0, 0
        return {"train/epoch_loss": loss / max(rows, 1)}


def _rows_per_step(conf: Conf, world: World) -> int:
    return conf.batch_size_of_all(world.size) * conf.accumulate_steps


def _build_state(worker: Worker, world: World, steps_per_epoch: int) -> TrainState:
    conf: Conf = worker.conf
    assert worker.dataset is not None, "checked by the plugin"
    model = build_model(conf.model, worker.dataset.info, worker.allow).to(world.device)
    if conf.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if conf.sync_batchnorm and world.size > 1:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    optimizer = build_optimizer(conf, model, worker.allow)
    by_step = conf.scheduler_interval == "step"
    length = None
    if conf.max_epochs is not None:
        length = conf.max_epochs * steps_per_epoch if by_step else conf.max_epochs
    if conf.max_steps is not None:
        steps = conf.max_steps if by_step else math.ceil(conf.max_steps / steps_per_epoch)
        length = steps if length is None else min(length, steps)
    return TrainState(
        model=model,
        optimizer=optimizer,
        scheduler=build_scheduler(conf, optimizer, length, worker.allow),
        scaler=torch.amp.GradScaler(world.device.type, enabled=conf.precision == "fp16"),
        ema=make_ema(model, conf.ema_decay),
    )


def _wrap(model: nn.Module, conf: Conf, world: World) -> nn.Module:
    """Return the model as training calls it."""
    if world.size > 1:
        devices = [world.device] if world.device.type == "cuda" else None
        model = DistributedDataParallel(model, device_ids=devices, gradient_as_bucket_view=True)
    return torch.compile(model) if conf.compile else model  # type: ignore[return-value]
