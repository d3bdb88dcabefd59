"""Where a training is, and how that goes into a checkpoint and back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from rtrain.runs.checkpoints import read_state
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

FILE_NAME = "progress.json"


@dataclass
class Progress:
    """Where training is; the same on every rank."""

    evaluations: ClassVar[str] = "evaluations"
    """What early stopping counts."""
    step: int = 0
    """Optimizer steps done, or rounds."""
    epoch: int = 0
    """Epochs done."""
    seconds: float = 0.0
    """Time that the run has taken."""
    judged_by: list[str | None] | None = None
    """The metric that early stopping watches, and its mode; None before the first evaluation and in old checkpoints."""
    bad_evaluations: int = 0
    """Evaluations in a row without improvement."""
    evaluated_step: int = -1
    """Step of the last evaluation."""
    ended: str = ""
    """Why training has ended for good, if the trainer itself ended it."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest value of each metric."""

    @property
    def done(self) -> dict[str, int]:
        """What has been done, by the key of the trainer that limits it."""
        lengths = {"max_epochs": self.epoch, "max_steps": self.step, "num_boost_round": self.step}
        return {**lengths, "early_stopping.patience": self.bad_evaluations}

    def early_end(self, early: EarlyStoppingConf | None) -> str:
        """Return why early stopping ends training, or an empty string."""
        if early is None or self.bad_evaluations < early.patience:
            return ""
        return f"early stopping: no improvement in {early.patience} {self.evaluations}"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what ``save`` wrote into a checkpoint."""
        stored = read_state(folder, FILE_NAME)
        return cls(**{one.name: _without_nulls(stored[one.name]) for one in fields(cls) if one.name in stored})

    def save(self, folder: Path) -> None:
        """Write it into a checkpoint."""
        write_atomic(folder / FILE_NAME, to_json(asdict(self), indent=2))


def _without_nulls(value: Any) -> Any:
    """Return metrics without those that JSON has no number for: NaN and infinity were written as null."""
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else value
