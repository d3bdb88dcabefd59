"""When a loop stops, what it saves and which checkpoint is the best: one set of rules for every trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rtrain.runs.checkpoints import Writer
from rtrain.runs.status import SIGNALLED
from rtrain.trainers.base import LENGTHS
from rtrain.trainers.loops.collectives import Collectives
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.finished import tell_over
from rtrain.trainers.loops.monitor import Monitor, StopConditions
from rtrain.trainers.loops.not_finite import NotFiniteError
from rtrain.trainers.loops.progress import Progress
from rtrain.trainers.loops.stopping import CALLBACK, TIME_LIMIT, StopSignal
from rtrain.trainers.worker import Worker


class LoopControl:
    """Decides when training stops, and what is saved; the loop does it.

    Args:
        worker: Its run's config names goals, and says when checkpoints are due.
        conf: The trainer's limits, and its early stopping.
        ranks: All ranks; they stop, judge and save together.
        progress: Where training is; the loop moves it on.
        monitor: The metric that decides the best checkpoint.
    """

    def __init__(
        self, worker: Worker, conf: Any, ranks: Collectives, progress: Progress, monitor: Monitor | None = None
    ) -> None:
        self._worker, self._ranks, self.progress = worker, ranks, progress
        self.monitor = monitor or Monitor(None, None)
        self.goals = StopConditions(worker.run.stop, worker.directions)
        self.signal = StopSignal(worker, ranks, conf.max_seconds, progress.seconds)
        self._early = conf.early_stopping
        self._lengths = [(key, getattr(conf, key)) for key in LENGTHS if getattr(conf, key, None) is not None]
        self.saved_step = -1 if worker.resume_dir() is None else progress.step
        self._scored_step = progress.evaluated_step
        self.news: Mapping[str, float] = {}
        """What the newest evaluation can be judged by; it scores a checkpoint of its step."""
        self.non_finite: set[str] = set()
        """Weights that were not finite when training began."""

    def reached(self) -> str:
        """Return which limit is reached, or an empty string; the usual length of a run counts first."""
        progress = self.progress
        for key, limit in self._lengths:
            if progress.done[key] >= limit:
                return key
        return progress.early_end(self._early) or progress.ended or self.goals.reached(progress.metrics)

    def reason(self) -> str:
        """Return why all ranks stop at this step, or an empty string; every rank calls it at every step."""
        reason = self.reached() or self.signal.agreed(self.progress.step)
        if reason == CALLBACK:
            self.progress.ended = reason
        return reason

    def over_before(self) -> str:
        """Return why a run that is resumed had ended, and tell the user; an empty string if it had not."""
        reason = self.reached() or (TIME_LIMIT if self.signal.was_over else "")
        if reason:
            limits = {key for key, _ in self._lengths}  # of a loop of the user's, not those of declared models
            done = {key: count for key, count in self.progress.done.items() if key in limits or key not in LENGTHS}
            goals = self.goals.longer(self.progress.metrics)
            tell_over(self._worker, reason, done, [*goals, *(self.signal.longer if reason == TIME_LIMIT else [])])
        return reason

    def saves_at_end(self, reason: str) -> bool:
        """Return whether a training that ends for ``reason`` leaves a checkpoint of its last step."""
        return reason not in SIGNALLED or self._worker.run.checkpoint.on_exit

    def describe_end(self, reason: str) -> None:
        """Record why training ends, unless it has its usual length, or the driver knows."""
        if reason not in ("", *LENGTHS, *SIGNALLED):
            self._worker.describe_end(reason)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let a number that is not finite end training without a failure if ``run.failure.nan_loss`` is ``stop``."""
        try:
            yield
        except NotFiniteError as error:
            if self._worker.run.failure.nan_loss != "stop":
                raise
            self._worker.describe_end(error.message)

    def judge(self, progress: EpochProgress) -> bool:
        """Let early stopping see the news; return whether the weights of this step are among the best.

        Then they have to be saved before the next step.
        """
        news, early = self.news, self._early
        if early is not None:
            stopping = self.monitor.stopping(early, self._worker.directions)
            if stopping.name in news:
                progress.judge(early, stopping, news)
        keep = self._worker.run.checkpoint.best.keep
        is_best = self.monitor.name in news and progress.is_best(self.monitor, keep)
        # Ranks save together, even if the last bit of a sum differs between them.
        return bool(self._ranks.max([float(is_best)])[0])

    def is_due(self, before: int | None = None) -> bool:
        """Return whether the steps since ``before``, or the last one, make a checkpoint due; or a time has come."""
        every = self._worker.run.checkpoint.every_steps
        return is_due(every, self.progress.step, before) or self.signal.save_agreed()

    @property
    def is_saved(self) -> bool:
        """Whether this step has a checkpoint."""
        return self.saved_step == self.progress.step

    def must_save(self) -> bool:
        """Return whether this step has no checkpoint; one from before the step was evaluated gets its score."""
        progress = self.progress
        evaluated = progress.evaluated_step == progress.step
        is_scored, self._scored_step = self._scored_step == progress.step, progress.evaluated_step
        if self.is_saved and evaluated and not is_scored:
            self._worker.checkpoints.note_score(**self._facts())
        return not self.is_saved

    def save(self, snapshot: Callable[[], Writer], **facts: Any) -> None:
        """Write a checkpoint of this step; ``facts`` about it, its score say, stand before those that are known."""
        self.progress.seconds = self.signal.seconds
        self._worker.save_checkpoint(snapshot, **{**self._facts(), **facts})
        self.saved_step = self.progress.step
        self.signal.saved()

    def _facts(self) -> dict[str, Any]:
        progress = self.progress
        score = self.monitor.score(self.news) if progress.evaluated_step == progress.step else None
        return {"step": progress.step, "epoch": progress.epoch, "metrics": progress.metrics, "score": score}

    def check_weights(self, non_finite: set[str], hint: str) -> None:
        """Fail if weights that were finite when training began no longer are, on whatever rank."""
        spoilt = non_finite - self.non_finite
        if self._ranks.max([float(bool(spoilt))])[0]:
            raise NotFiniteError.of_weights(spoilt, self.progress.step, hint)


def is_due(every: int | None, count: int, before: int | None = None) -> bool:
    """Return whether a multiple of ``every`` was reached since ``before``; without it, just now."""
    return every is not None and count // every > (count - 1 if before is None else before) // every
