"""Losses, gradients and weights that are NaN or infinite: the errors, and the limit of skipped steps."""

from __future__ import annotations

from collections.abc import Iterable

from rtrain.errors import TrainingError
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.worker import Worker


class NotFiniteError(TrainingError):
    """A training loss, gradients or weights are not finite numbers."""

    @classmethod
    def of_loss(cls, step: int, epoch: int, batch: int, hint: str) -> NotFiniteError:
        """Return the error of a step whose loss is NaN or infinite."""
        place = f"step {step} (batch {batch} of epoch {epoch + 1})"
        return cls(f"the training loss of {place} is not a finite number.", hint)

    @classmethod
    def of_weights(cls, names: Iterable[str], step: int, hint: str) -> NotFiniteError:
        """Return the error of weights that are not saved; ``names`` may be empty where another rank holds them."""
        some = ", ".join(sorted(names)[:3]) or "weights of another worker"
        return cls(f"by step {step} weights have become NaN or infinite and are not saved: {some}.", hint)


def skip_step(worker: Worker, progress: EpochProgress, step: int, batch: int, hint: str) -> None:
    """Note that a step was left out.

    Args:
        worker: Of this rank.
        progress: Counts such steps.
        step: Its number.
        batch: Its number in the epoch.
        hint: What the user can do.

    Raises:
        TrainingError: Too many steps in a row were left out.
    """
    worker.report({"train/skipped_batch": batch}, step=step, epoch=progress.epoch)
    progress.skipped_in_a_row += 1
    if progress.skipped_in_a_row >= worker.run.failure.max_skipped_steps:
        raise _too_many_skipped(progress.skipped_in_a_row, step, hint)


def check_any_taken(progress: EpochProgress, step: int, hint: str) -> None:
    """Fail if every step of the training was left out."""
    if 0 < step <= progress.skipped_in_a_row:
        raise _too_many_skipped(progress.skipped_in_a_row, step, hint)


def _too_many_skipped(num_steps: int, step: int, hint: str) -> TrainingError:
    return TrainingError(
        f"{num_steps} steps in a row, up to step {step}, were skipped because their loss or gradients are not finite.",
        f"{hint} run.failure.max_skipped_steps limits the skipped steps in a row.",
    )
