"""The contract of ``trainer.callbacks``: what is called on each worker, in the middle of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from rtrain.trainers.loops.progress import Progress
from rtrain.trainers.worker import Worker


class Training:
    """A training as its callbacks see it, at the moment at which they look.

    Args:
        worker: Services and place of this rank.
        progress: Where training is.
        learned: Returns the model and its optimizer.
        stop: Asks all ranks to end training.
    """

    def __init__(
        self, worker: Worker, progress: Progress, learned: Callable[[], tuple[Any, Any]], stop: Callable[[], None]
    ) -> None:
        self._worker, self._progress, self._learned, self._stop = worker, progress, learned, stop

    @property
    def model(self) -> Any:
        """What learns: a torch module, the Booster; of JAX the weights, which the next step makes invalid."""
        return self._learned()[0]

    @property
    def optimizer(self) -> Any:
        """The optimizer of a torch module; None elsewhere."""
        return self._learned()[1]

    @property
    def step(self) -> int:
        """Optimizer steps done, those before a resume counted in; of boosted trees: rounds."""
        return self._progress.step

    @property
    def epoch(self) -> int:
        """Epochs done; of boosted trees: rounds."""
        return self._progress.epoch

    @property
    def metrics(self) -> Mapping[str, float]:
        """The newest value of each metric, e.g. ``val/loss``."""
        return dict(self._progress.metrics)

    @property
    def rank(self) -> int:
        """Number of this worker; callbacks are called on all of them."""
        return self._worker.rank

    @property
    def world_size(self) -> int:
        """Number of workers; 1 where training is in the driver's process."""
        return self._worker.world_size

    @property
    def run_dir(self) -> Path:
        """The run directory: a place for files. Workers on other machines see it in a shared folder only."""
        return self._worker.run_dir

    def log(self, metrics: Mapping[str, float]) -> None:
        """Record metrics of your own at this step; those of rank 0 count.

        Raises:
            TypeError: A name is not a text, or a value not a number.
            ValueError: A name is empty.
        """
        for name in metrics:
            if not isinstance(name, str):
                raise TypeError(f"the name of a metric must be a text, not {name!r}")
            if not name.strip():
                raise ValueError("a metric has no name")
        self._worker.report(metrics, step=self.step, epoch=self.epoch)

    def stop(self) -> None:
        """End training before the next step, or with several workers at the next step at which they agree on it."""
        self._stop()


class WorkerCallback:
    """Called on each worker while it trains. Override the methods that you need.

    Training waits for them. The state of a callback is not in checkpoints: ``train_begin`` is called again when a run
    is resumed, with the step and the epoch that were reached. An exception fails the run, unless ``on_error`` is
    ``warn``.
    """

    on_error: Literal["fail", "warn"] = "fail"
    """``warn``: an exception is a notice, once, and training continues."""

    def train_begin(self, training: Training) -> None:
        """Called before the first step, and after a resume before the next one."""

    def epoch_begin(self, training: Training) -> None:
        """Called before the first step of an epoch, and before the next one where a run is resumed in the middle."""

    def step_begin(self, training: Training, batch: Any) -> None:
        """Called before an optimizer step, or a round.

        Args:
            training: The training.
            batch: The rows of this rank, ``batch.x`` and ``batch.y``, maybe none; None for boosted trees.
        """

    def step_end(self, training: Training, batch: Any) -> None:
        """Called after an optimizer step, or a round."""

    def epoch_end(self, training: Training) -> None:
        """Called after the last step of an epoch, before its evaluation."""

    def evaluated(self, training: Training, metrics: Mapping[str, float]) -> None:
        """Called after an evaluation, with what came out. Its checkpoint comes later: don't change weights here."""

    def before_save(self, training: Training) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, training: Training) -> None:
        """Called when a checkpoint is written; with ``run.checkpoint.upload: async`` when its copy is taken."""

    def train_end(self, training: Training) -> None:
        """Called after the last checkpoint of a training that was not cut off by an exception."""
