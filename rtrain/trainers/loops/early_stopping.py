"""When training ends because it no longer gets better: the key ``early_stopping`` of all trainers that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rtrain.config.value_types.texts import one_of


@dataclass(kw_only=True)
class EarlyStoppingConf:
    """Stop when a metric no longer gets better."""

    monitor: str | None = None
    """Metric to monitor, e.g. ``val/loss``; null: the metric that selects the best checkpoint."""

    mode: Annotated[str, *one_of("auto", "min", "max")] = "auto"
    """Whether smaller or larger is better; ``auto`` takes what is known of the metric, and refuses one of which nothing
    is."""

    patience: Annotated[int, Field(ge=1)] = 5
    """Number of evaluations in a row without improvement after which the run ends."""

    min_delta: Annotated[float, Field(ge=0)] = 0.0
    """Minimum change that counts as an improvement."""
