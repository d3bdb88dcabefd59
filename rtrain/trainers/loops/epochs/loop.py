"""Train in epochs: limits, evaluations, early stopping, checkpoints and resuming, the same for every framework."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rtrain.datasets.base import EpochPlan
from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import Writer
from rtrain.runs.status import SIGNALLED
from rtrain.trainers.async_writer import in_turn
from rtrain.trainers.checkpoint_errors import reading
from rtrain.trainers.loops.auto import default_monitor, evaluated_split
from rtrain.trainers.loops.callbacks.base import Training, WorkerCallback
from rtrain.trainers.loops.callbacks.calls import Callbacks
from rtrain.trainers.loops.collectives import Collectives, Ranks
from rtrain.trainers.loops.control import LoopControl, is_due
from rtrain.trainers.loops.epochs.conf import EpochsConf
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.epochs.meter import Meter
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.worker import Worker


class EpochLoop:
    """One training on one rank.

    Args:
        worker: Services and place of this rank.
        conf: Limits, steps and evaluations.
        learner: What learns.
        ranks: The ranks that have their own rows; they step and evaluate together.
        everyone: All ranks, which stop and save together, if there are more of them.
    """

    def __init__(
        self, worker: Worker, conf: EpochsConf, learner: Learner, ranks: Ranks, everyone: Collectives | None = None
    ) -> None:
        info, splits = worker.data.info, worker.data.splits
        self.worker, self.conf, self.learner = worker, conf, learner
        worker.checkpoints.group = learner.savers
        self.ranks = ranks
        self.rows_per_step = conf.rows_per_step(ranks.size)
        self.train_loader = learner.open_loader(splits["train"], info, ranks)
        self.split = evaluated_split(conf.evaluate_split, info)
        self.eval_loader = None if self.split is None else learner.open_loader(splits[self.split], info, ranks)
        default = default_monitor(conf.evaluate_split, info)
        monitor = Monitor.of(worker.run.checkpoint.best, conf, worker.directions, default)
        self.progress = self._resumed()
        self.control = LoopControl(worker, conf, everyone or ranks, self.progress, monitor)
        self.control.non_finite = learner.non_finite()
        training = Training(worker, self.progress, learner.learned, self.control.signal.ask)
        self.callbacks = Callbacks(learner.callbacks(), training, worker.notice)
        self.meter = self._new_meter()

    def _resumed(self) -> EpochProgress:
        """Go back to the newest checkpoint of this run, if there is one; else take weights that were asked for."""
        folder, weights = self.worker.resume_dir(), self.worker.init_dir()
        if weights is not None:
            with reading(weights):
                self.learner.load_weights(weights)
        if folder is None:
            return EpochProgress()
        with reading(folder):
            self.learner.load(folder)
            return self.learner.progress(folder)

    def run(self) -> None:
        """Train epoch after epoch, and leave a checkpoint of where it ends."""
        with self.control.ending():
            self._run()

    def _run(self) -> None:
        self._describe()
        control = self.control
        reason = control.over_before()
        self.callbacks.tell(WorkerCallback.train_begin)
        while not reason:
            reason = self._train_epoch() or control.reached()
        self.meter.check_any_taken()
        if reason not in SIGNALLED and self.progress.evaluated_step != self.progress.step:
            self._evaluate({}, due=False)
        if control.saves_at_end(reason):
            self._save()
        self.callbacks.tell(WorkerCallback.train_end)
        self._describe()
        self.worker.life.rest()
        control.describe_end(reason)

    def _train_epoch(self) -> str:
        """Train one epoch, or what is left of it; return why training ends inside of it, or an empty string."""
        progress, one = self.progress, self._next_pass()
        self.meter = self._new_meter()
        self.callbacks.tell(WorkerCallback.epoch_begin)
        for batch in self.train_loader.steps(one):
            reason = self._between_steps()
            if reason:
                return reason
            self.callbacks.tell(WorkerCallback.step_begin, batch)
            self.learner.seed(seed_step(self.worker.run.seed, self.ranks.rank, progress.step))
            taken = self.learner.train_step(batch, progress.step)
            progress.step += 1
            progress.step_in_epoch += 1
            self.worker.alive(progress.step)
            self.meter.add(taken, batch.num_global)
            if progress.step % self.worker.run.log_every_steps == 0:
                self._report(self.meter.metrics())
            self.callbacks.tell(WorkerCallback.step_end, batch)
        self.meter.look()
        self._check_rows()
        self._end_epoch()
        return ""

    def _check_rows(self) -> None:
        """Fail if rows of the epoch that ends came twice or never."""
        seen, there = self.progress.rows, self.train_loader.num_rows
        if seen != there:
            raise TrainingError(
                f"epoch {self.progress.epoch} had {seen} rows, but the train split has {there}.",
                "Its files changed while they were read, or the dataset's source repeats or skips rows.",
            )

    def _between_steps(self) -> str:
        """Do what is due after the step before, inside an epoch; return why training ends here, or an empty string."""
        progress = self.progress
        inside = progress.step_in_epoch > 0
        is_best = inside and is_due(self.conf.eval_every_steps, progress.step) and self._evaluate({})
        reason = self.control.reason()
        if not reason and (is_best or self.control.is_due(None if inside else progress.step)):
            self._save()
        return reason

    def _end_epoch(self) -> None:
        """Evaluate, report and save as far as they are due, and move on to the next epoch."""
        progress, conf, cadence = self.progress, self.conf, self.worker.run.checkpoint
        progress.epoch += 1
        progress.step_in_epoch = 0
        self.callbacks.tell(WorkerCallback.epoch_end)
        found = self.meter.epoch_metrics()
        due = is_due(conf.eval_every_epochs, progress.epoch) or is_due(conf.eval_every_steps, progress.step)
        is_best = False
        if due or self.control.reached():
            is_best = self._evaluate(found, due=due)
        else:
            self._report(found)
        progress.ended = self.learner.end_epoch(progress.epoch, progress.metrics)
        if is_best or is_due(cadence.every_epochs, progress.epoch) or is_due(cadence.every_steps, progress.step):
            self._save()

    def _evaluate(self, found: dict[str, float], *, due: bool = True) -> bool:
        """Evaluate, unless this step was, and report together with ``found``; return what ``judge`` does.

        Args:
            found: Other metrics of the step.
            due: A longer run would evaluate here too. If not, the result is not judged, so that a run which is extended
                ends like one that was as long from the beginning.
        """
        progress = self.progress
        new = progress.evaluated_step != progress.step
        values: dict[str, float] = {}
        if new and self.eval_loader is not None:
            self.meter.look()
            with self.meter.paused():
                self.learner.sync()
                values = self.learner.evaluate(self._alive(self.eval_loader.steps(self._evaluation_pass())))
            if math.isnan(values.get("loss", 0.0)) and self.worker.run.failure.nan_loss == "raise":
                raise TrainingError(f"{self.split}/loss is not a number at step {progress.step}.", self.learner.hint)
            values = {f"{self.split}/{name}": value for name, value in values.items()}
        progress.evaluated_step = progress.step
        if found or values:
            self._report({**found, **values})
        if values:
            self.callbacks.tell(WorkerCallback.evaluated, values)
        if not new:
            return False
        self.control.news = progress.news()
        return bool(self.control.news and due) and self._judge()

    def _alive(self, steps: Iterable[Any]) -> Iterator[Any]:
        """Yield the steps, each of which tells that this rank gets on."""
        for step in steps:
            self.worker.alive()
            yield step

    def _judge(self) -> bool:
        """Let early stopping, and a schedule that watches a metric, see the news; return what ``judge`` does.

        A value is seen once: the loss of an epoch says nothing of the evaluations inside of the next one.
        """
        self.progress.unjudged = []
        self.learner.on_evaluation(self.control.news.get(str(self.control.monitor.name)))
        return self.control.judge(self.progress)

    def _report(self, metrics: dict[str, float]) -> None:
        self.progress.add(metrics)
        self.worker.report(metrics, step=self.progress.step, epoch=self.progress.epoch)

    def _save(self) -> None:
        """Write a checkpoint of this step, once; one that was written before the step was evaluated gets its score."""
        if not self.control.must_save():
            return
        self.meter.look()
        with self.meter.paused():
            self.learner.sync()
            self.control.check_weights(self.learner.non_finite(), self.learner.hint)
            self.callbacks.tell(WorkerCallback.before_save)
            self.control.save(self.snapshot)
        self.callbacks.tell(WorkerCallback.after_save)

    def snapshot(self) -> Writer:
        """Copy what this rank has of a checkpoint, and return what writes the copy."""
        progress = replace(self.progress, metrics=dict(self.progress.metrics))
        rest = [progress.save] if self.worker.rank == 0 else []
        return in_turn(self.learner.snapshot(), *rest)

    def _new_meter(self) -> Meter:
        return Meter(self.worker, self.learner, self.progress, self.train_loader.num_steps(self.rows_per_step))

    def _next_pass(self) -> EpochPlan:
        """Return the epoch that begins, or what is left of the one under way."""
        plan = EpochPlan(
            rank=self.ranks.rank,
            world_size=self.ranks.size,
            global_batch_size=self.rows_per_step,
            seed=self.worker.run.seed,
            epoch=self.progress.epoch,
            shuffle=self.conf.shuffle,
            skip_rows=self.progress.rows,
        )
        return replace(plan, began=self.progress.began(plan.layout))

    def _evaluation_pass(self) -> EpochPlan:
        rows = self.conf.eval_batch_size * self.ranks.size
        return EpochPlan(
            rank=self.ranks.rank, world_size=self.ranks.size, global_batch_size=rows, seed=0, shuffle=False
        )

    def _describe(self) -> None:
        """Tell the manifest on how much this rank trains."""
        num_rows = {"train": self.train_loader.num_own_rows(self._next_pass())}
        if self.eval_loader is not None:
            num_rows[str(self.split)] = self.eval_loader.num_own_rows(self._evaluation_pass())
        self.worker.describe({**self.learner.describe(), self.learner.row_counts: num_rows})
