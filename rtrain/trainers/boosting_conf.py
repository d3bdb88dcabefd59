"""The keys that trainers of boosted trees share. The docstring under a field is the user's documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field


@dataclass(kw_only=True)
class BoostingConf:
    """How many trees to grow, and what to measure meanwhile."""

    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the library, under its own names. What the dataset tells (objective, number of classes) and what
    rtrain sets (seed, threads, device) may be left out. Constraints take the names of features too."""

    num_boost_round: Annotated[int, Field(ge=1)] = 100
    """Rounds; each adds one tree, or one per class."""

    early_stopping_rounds: Annotated[int, Field(ge=1)] | None = None
    """Stop after so many rounds without an improvement of the monitored metric; null: grow all trees."""

    early_stopping_min_delta: Annotated[float, Field(ge=0)] = 0.0
    """Change of the monitored metric that counts as an improvement, if it is larger than this."""

    eval_splits: list[str] | None = None
    """Splits to evaluate after each round, e.g. ``[train, val]``; the last one decides early stopping and the best
    round. null: ``val``, else ``test``; ``[]``: none."""

    objective_function: str | None = None
    """An objective of your own, ``module:function``, called as the library calls one."""

    metric_functions: list[str] = field(default_factory=list)
    """Metrics of your own, each ``module:function``, called as the library calls one."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each worker; null: as many as it has cores."""
