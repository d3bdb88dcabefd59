"""What rtrain does while Lightning trains: report, save, stop, and make the random numbers of a step its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from safetensors.torch import save_file

from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import Writer
from rtrain.runs.status import SIGNALLED
from rtrain.trainers.base import LENGTHS
from rtrain.trainers.lightning.checkpoint.stored import check_readable, without_objects
from rtrain.trainers.lightning.config import default_monitor
from rtrain.trainers.lightning.inputs import OurData, SharedData
from rtrain.trainers.lightning.losses import HINT, Losses
from rtrain.trainers.lightning.metrics.agreement import Agreement
from rtrain.trainers.lightning.metrics.logged import (
    TRAIN,
    names_here,
    names_of_evaluation,
    names_of_training,
    of_epoch,
    of_evaluation,
    of_steps,
)
from rtrain.trainers.lightning.metrics.step_loss import StepLoss
from rtrain.trainers.lightning.metrics.watched import Watched
from rtrain.trainers.lightning.schedules import Schedules
from rtrain.trainers.loops.control import LoopControl, is_due
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.torch.checkpoint.optimizer_state import checked_state
from rtrain.trainers.torch.checkpoint.staging import Stager
from rtrain.trainers.torch.optimization.finite import non_finite, weights_of
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker

CHECKPOINT, WEIGHTS = "lightning.ckpt", "model.safetensors"


class StoppedError(Exception):
    """All ranks have agreed to stop immediately; the checkpoint is written."""


class Services(pl.callbacks.Checkpoint):
    """Called last, when everything of a step or epoch is done: after all callbacks, and after the module's own hook."""

    def __init__(self, worker: Worker, ranks: TorchRanks, data: OurData | SharedData, progress: EpochProgress) -> None:
        self._worker, self._ranks, self._data, self._split = worker, ranks, data, data.split
        best, conf = worker.run.checkpoint.best, worker.conf
        monitor = Monitor.of(best, conf, worker.directions, default_monitor(data.split))
        self.watched, self.progress, self._stager = Watched(worker, monitor), progress, Stager()
        self.control = LoopControl(worker, conf, ranks, progress, monitor)
        self._agreement = Agreement(worker, ranks)
        self._schedules = Schedules(worker, ranks, self._agreement)
        self.losses, self._step_loss = Losses(worker, ranks, progress), StepLoss(ranks)
        self._due, self._leaves = False, ""
        """What the evaluation after the step, or the end of the epoch, has to do: save, and leave for a reason."""
        self._closing: dict[str, float] | None = None
        """What the evaluation at the end of the epoch has found, until the epoch has its own metrics."""
        self._reloads, self._begun = 0, False
        self._module: pl.LightningModule | None = None
        self._trains: Mapping[str, bool] = {}
        """Whether each weight was trained when the checkpoint was written, by name."""
        self._ended: tuple[Any, int] | None = None
        """What a step returned and its number, until the module's own hook is done."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Remember the module."""
        self._module = pl_module

    def state_dict(self) -> dict[str, Any]:
        """Return which weights are trained: callbacks and modules freeze some, and are asked once for each epoch."""
        assert self._module is not None
        return {"trains": {name: weight.requires_grad for name, weight in self._module.named_parameters()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what ``state_dict`` returned; it holds from the start of training on, when all is built and wrapped."""
        self._trains = state_dict["trains"]

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Look at what the optimizers take from a checkpoint, which comes next."""
        for optimizer in trainer.optimizers:
            optimizer.register_load_state_dict_pre_hook(checked_state)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell the manifest where and on how much this rank trains."""
        self._reloads = trainer.reload_dataloaders_every_n_epochs
        self.control.non_finite = non_finite(weights_of(pl_module))
        before = {} if self._worker.resume_dir() is None else dict(self.progress.metrics)
        inside = self.progress.step_in_epoch > 0

        def resumed(name: str) -> float | None:
            return next((before[one] for one in names_here(name, self._split) if one in before), None)

        self._schedules.take_over(trainer, resumed, inside=inside)
        self._begun = inside
        for name, weight in pl_module.named_parameters():
            weight.requires_grad_(self._trains.get(name, weight.requires_grad))
        if inside and self._data.train_batches is None:
            self._skip_rows(trainer)
        self._follow_modules_hook(trainer)
        self._describe(pl_module)

    def _skip_rows(self, trainer: pl.Trainer) -> None:
        """Read the batches that a custom loader gave before in this epoch, and drop them."""
        fetcher: Any = trainer.fit_loop._data_fetcher
        if not hasattr(fetcher, "prefetch_batches"):  # the module takes batches by itself: dataloader_iter
            return
        for _ in range(self.progress.step_in_epoch):
            next(fetcher)
            fetcher.fetched -= 1  # Lightning adds what the checkpoint counted
        self._data.seed_rows(self.progress.epoch, self.progress.step_in_epoch)

    def _follow_modules_hook(self, trainer: pl.Trainer) -> None:
        """End each step when Lightning closes it: it calls the module after all callbacks, which may change weights."""
        connector: Any = trainer._logger_connector
        own = connector.on_batch_end

        def on_batch_end() -> None:
            if self._ended is not None:
                ended, self._ended = self._ended, None
                self._end_step(trainer, *ended)
            own()

        connector.on_batch_end = on_batch_end

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin a new order of the rows."""
        self._step_loss.clear()
        batches = self._data.train_batches
        if batches is not None:
            batches.begin(trainer.current_epoch)
        if self._begun:  # else the loader's pass over the rows has just been seeded and begun
            self._data.seed_rows(trainer.current_epoch, 0)
        self._begun = True
        trainer.reload_dataloaders_every_n_epochs = self._reloads
        self.progress.epoch, self.progress.step_in_epoch, self.progress.rows = trainer.current_epoch, 0, 0

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Seed the step, and weigh this rank's rows in it."""
        self._ranks.seed(seed_step(self._worker.run.seed, self._ranks.rank, trainer.current_epoch, batch_idx))
        if self._ranks.size > 1 and self._data.train_batches is not None:
            trainer.strategy.share = self._data.train_batches.share(batch_idx)

    def on_before_optimizer_step(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Fail where workers would drift apart: they average gradients of what was not frozen at first."""
        if self._ranks.size > 1:
            strategy: Any = trainer.strategy
            strategy.frozen.check(None, "Train it from the start, or use num_workers=1.")

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Remember the step; the module's own hook comes next."""
        self._ended = outputs, batch_idx

    def _end_step(self, trainer: pl.Trainer, outputs: Any, batch_idx: int) -> None:
        """Report and save as far as they are due; leave if all ranks agree to."""
        progress, control = self.progress, self.control
        before, new = progress.step, trainer.global_step != progress.step
        progress.step, progress.step_in_epoch = trainer.global_step, batch_idx + 1
        batches, own_rows = self._data.train_batches, 1
        if batches is not None:
            progress.rows, own_rows = batches.rows_before(batch_idx + 1), batches.own_rows(batch_idx)
        self._step_loss.add(outputs, own_rows, trainer.accumulate_grad_batches)
        self._show(trainer)
        if is_due(self._worker.run.log_every_steps, progress.step, before):
            self.losses.look()
            self._report(self._step_loss.mean() | of_steps(trainer, self._split))
        if new:
            self._step_loss.clear()
        reason = control.signal.agreed(progress.step) if new else ""
        due = control.is_due(before)
        if reason and reason not in SIGNALLED:
            self._end(trainer, reason)
        ends = (new and _has_all_steps(trainer)) or reason not in ("", *SIGNALLED)
        self._due, self._leaves = due or ends, reason if reason in SIGNALLED else ""
        # Lightning resumes exactly from inside of an epoch or from its end, but not from its last step; and a resumed
        # run doesn't evaluate the step again, so the checkpoint has to hold what the evaluation finds.
        if batch_idx + 1 != trainer.num_training_batches and not _evaluates(trainer):
            self._leave_or_save(trainer)
        self._data.seed_rows(trainer.current_epoch, batch_idx + 1)

    def _end(self, trainer: pl.Trainer, reason: str) -> None:
        trainer.should_stop = True
        self.control.describe_end(reason)

    def _leave_or_save(self, trainer: pl.Trainer, *, due: bool = False) -> None:
        """Do what the step has left to do; save it also if that is ``due`` for another reason."""
        due, reason, self._due, self._leaves = due or self._due, self._leaves, False, ""
        if due or (reason and self.control.saves_at_end(reason)):
            self._save(trainer)
        if reason:
            raise StoppedError(reason)

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        """Tell the watchdog that this rank gets on."""
        self._worker.alive()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the metrics of the evaluation, and judge them; those of an epoch that it closes together with its own.

        Lightning evaluates an epoch before it ends it.
        """
        if trainer.sanity_checking:
            # A module may log nothing in a sanity check.
            if logged := self._agreement.first(names_of_evaluation(trainer, self._split)):
                self.watched.look(logged)
            return
        found = of_evaluation(trainer, self._split)
        if trainer.is_last_batch:
            self._closing = found
        else:
            _check_whole_step(trainer)
            self._report(found)
            is_best = self._judge(trainer, found)
            self._leave_or_save(trainer, due=is_best or trainer.should_stop or self.control.is_saved)
            self._data.seed_rows(trainer.current_epoch, self.progress.step_in_epoch)

    def _judge(self, trainer: pl.Trainer, measured: Mapping[str, float] | None, *, ended: bool = False) -> bool:
        """Stop early, or for a goal, as all ranks agree; return whether this step's weights are among the best.

        Args:
            trainer: Lightning's.
            measured: What an evaluation of this step has found; None without one.
            ended: The epoch has ended, so that metrics of training count too.
        """
        progress = self.progress
        progress.metrics = self._agreement.on(progress.metrics, measured or {})
        names = names_of_training(trainer, self._split) if ended else sorted(measured or {})
        progress.unjudged, names = self._agreement.first((progress.unjudged, names))
        evaluated = measured is not None or self._split is None
        self.watched.look([*progress.metrics, *names], evaluated=evaluated, ended=ended)
        self._take_news(None if ended else names)
        is_best = self.control.judge(progress)
        reached = self.control.reached()
        if reached and reached not in LENGTHS:
            self._end(trainer, reached)
        # A callback of one rank may have asked for the end.
        trainer.should_stop = bool(self._ranks.max([float(trainer.should_stop)])[0])
        return is_best

    def _take_news(self, evaluated: Collection[str] | None) -> None:
        """Take the values that no decision was made by; those of training wait for the end of the epoch.

        Args:
            evaluated: What an evaluation inside of the epoch has measured; None at the end.
        """
        progress = self.progress
        progress.evaluated_step = progress.step
        news = progress.news()
        if evaluated is not None:
            news = {one: news[one] for one in news if one in evaluated and not one.startswith(f"{TRAIN}/")}
        self.control.news, progress.unjudged = news, [name for name in progress.unjudged if name not in news]

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report the epoch, and save if it is due or the last one.

        If training ends inside of the epoch, its checkpoint exists already, and a resumed run takes the other rows.
        """
        self.losses.look()
        if self.control.is_saved and not _is_over(trainer):
            self._describe(pl_module)
            return
        progress, cadence = self.progress, self._worker.run.checkpoint
        self._schedules.end_epoch(trainer)
        progress.epoch, progress.step_in_epoch, progress.rows = trainer.current_epoch + 1, 0, 0
        closing, self._closing = self._closing, None
        self._report(of_epoch(trainer, self._split) | (closing or {}))
        is_best = self._judge(trainer, closing, ended=True)
        due = is_best or is_due(cadence.every_epochs, progress.epoch)
        self._describe(pl_module)
        self._count_steps_again(trainer)
        last = trainer.should_stop or progress.epoch == trainer.max_epochs or _has_all_steps(trainer)
        self._leave_or_save(trainer, due=due or last)

    def _count_steps_again(self, trainer: pl.Trainer) -> None:
        """Have Lightning count the steps of an epoch, after one that was resumed with steps of another size."""
        batches = self._data.train_batches
        if batches is not None and batches.begin_row != batches.begin_step * batches.rows_per_step:
            batches.begin(self.progress.epoch)
            trainer.reload_dataloaders_every_n_epochs = 1

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Name the metrics that were to decide something and never came."""
        self.watched.end(self.progress.metrics)

    def _report(self, found: Mapping[str, float]) -> None:
        self.progress.add(found)
        if found:
            self._worker.report(found, step=self.progress.step, epoch=self.progress.epoch)

    def _save(self, trainer: pl.Trainer) -> None:
        """Write a checkpoint of this step, once, or its score; every rank calls it, rank 0 writes."""
        if not self.control.must_save():
            return
        self.losses.look()
        self.control.check_weights(non_finite(weights_of(trainer.lightning_module)), HINT)
        state, left_out = without_objects(trainer._checkpoint_connector.dump_checkpoint(weights_only=False))
        check_readable(state)
        if left_out and self.control.saved_step < 0:
            self._worker.notice(f"hyperparameters that are objects are not saved in checkpoints: {', '.join(left_out)}")
        self.control.save(lambda: self._snapshot(state))

    def _snapshot(self, state: Mapping[str, Any]) -> Writer:
        """Copy what Lightning would write, and our own progress."""
        copied, progress = self._stager.take(state), replace(self.progress, metrics=dict(self.progress.metrics))

        def write(folder: Path) -> None:
            torch.save(copied, folder / CHECKPOINT)
            # Each weight under each of its names: modules are loaded by name.
            save_file({name: one.clone() for name, one in copied["state_dict"].items()}, folder / WEIGHTS)
            progress.save(folder)

        return write

    def _show(self, trainer: pl.Trainer) -> None:
        batches, progress = self._data.train_batches, self.progress
        steps = int(trainer.num_training_batches) if trainer.num_training_batches != float("inf") else None
        rows = 0 if batches is None else batches.rows_per_step
        self._worker.progress(step=progress.step, epoch=progress.epoch, steps_per_epoch=steps, rows=rows)

    def _describe(self, module: pl.LightningModule) -> None:
        self._worker.describe(
            {
                "device": str(self._ranks.device),
                "num_threads": torch.get_num_threads(),
                "num_parameters": sum(one.numel() for one in module.parameters()),
                "num_rows": dict(self._data.num_own_rows),
            }
        )


def _has_all_steps(trainer: pl.Trainer) -> bool:
    """Return whether the limit on steps is reached, or passed by a batch that took several."""
    return trainer.max_steps is not None and 0 <= trainer.max_steps <= trainer.global_step


def _is_over(trainer: pl.Trainer) -> bool:
    """Return whether all steps of the epoch were taken."""
    return bool(trainer.fit_loop.epoch_loop._num_ready_batches_reached())


def _check_whole_step(trainer: pl.Trainer) -> None:
    """Fail if an evaluation comes between two optimizer steps, where no checkpoint can be written.

    Raises:
        TrainingError: Names the arguments.
    """
    batches = trainer.accumulate_grad_batches
    if trainer.fit_loop.epoch_loop._should_accumulate():
        raise TrainingError(
            "trainer.trainer_args.val_check_interval: no checkpoint can be written for an evaluation between two "
            f"optimizer steps (accumulate_grad_batches={batches}), and it might be the best one.",
            f"Evaluate after a multiple of {batches} batches in each epoch.",
        )


def _evaluates(trainer: pl.Trainer) -> bool:
    """Return whether Lightning evaluates between the batch that ends and the next one."""
    loop: Any = trainer.fit_loop.epoch_loop
    return not loop.val_loop.skip and bool(loop._should_check_val_fx(trainer.fit_loop._data_fetcher))
