"""Boosted trees that are built on others: those of the same run when it resumes, or those of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.worker import Worker

SAME_FEATURES = ("task", "input_shape", "num_classes", "class_names", "feature_names", "categories")
"""What trees of another run depend on, of the data."""
MAX_SHOWN = 200


@dataclass(frozen=True)
class InitialModel:
    """What training begins with."""

    resumed: Path | None = None
    """The checkpoint that the run resumes from."""
    init: Path | None = None
    """The checkpoint of another run on whose trees it builds (``run.init_from``)."""

    @classmethod
    def of(cls, worker: Worker, *, from_scratch: bool) -> InitialModel:
        """Return the model to build on.

        Args:
            worker: Knows where the run was, and what it began with.
            from_scratch: A resumed run has to begin with its first round again.
        """
        resumed, wanted = None if from_scratch else worker.resume_dir(), worker.run.init_from
        return cls(resumed, None if wanted is None or resumed is not None else Path(wanted))

    @property
    def folder(self) -> Path | None:
        """The checkpoint that holds the trees to build on, if there are any."""
        return self.init if self.resumed is None else self.resumed


def check_trees(info: DatasetInfo, wrote: CheckpointMetadata, objectives: tuple[Any, Any]) -> None:
    """Check that trees of another run (``run.init_from``) can be built on.

    Args:
        info: The current dataset.
        wrote: The metadata of the checkpoint.
        objectives: The objective of those trees, and that of the new ones.

    Raises:
        ConfigError: Those trees need other features, or their sums mean something else.
    """
    for name in SAME_FEATURES:
        before, now = getattr(wrote.info, name), getattr(info, name)
        if before != now:
            raise ConfigError(
                f"run.init_from: its trees were trained on other data: {name} was {_few(before)}, but is {_few(now)}.",
                "Use the same columns in this run (dataset.features, dataset.categorical), or leave run.init_from out.",
            )
    before, now = objectives
    if before != now:
        raise ConfigError(
            f"run.init_from: its trees are for the objective {before}, not {now}.",
            "Set trainer.params.objective to that, or leave run.init_from out.",
        )


def _few(value: Any) -> str:
    """Return a value as text, cut where it names hundreds of features."""
    text = str(dict(value)) if isinstance(value, Mapping) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
