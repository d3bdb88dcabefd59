"""What a config may say of a sweep, whatever searches its space. A field's docstring is the user's documentation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from rtrain.config.needs import SWEEP, WORKERS, Rules
from rtrain.config.value_types.goals import METRIC_SCHEMA, MODE_SCHEMA, read_metric, read_mode
from rtrain.config.value_types.names import MAX_NAME, NAME

AT_ONCE = replace(
    WORKERS,
    otherwise="num_workers=0 trains one trial after the other",
    instead="Train trials side by side, on Ray workers: num_workers=1",
)


@dataclass(kw_only=True)
class SweepConf:
    """What ``--multirun`` varies, what it looks for, and when it ends."""

    needs: ClassVar[Rules] = (SWEEP.of_section(), AT_ONCE.of("max_concurrent"))

    name: Annotated[str, Field(pattern=NAME, max_length=MAX_NAME)] | None = None
    """Folder below ``run.root_dir`` that holds the trials; null: ``run.name`` and a hash of the search space, so that
    the same command resumes the same sweep."""

    params: dict[str, Any] = field(default_factory=dict)
    """Search space in addition to the command line: a list of values, or an expression in Hydra's grammar, by key, e.g.
    ``{optimizer.lr: "tag(log, interval(1e-4, 1))", batch_size: [32, 64]}``. A mapping holds the keys below its key."""

    zip: dict[str, list[Any]] = field(default_factory=dict)
    """What is varied together: the first values of all keys, then the second ones, and so on."""

    exclude: list[dict[str, Any]] = field(default_factory=list)
    """Combinations to leave out, e.g. ``[{optimizer.lr: 0.1, num_workers: [1, 2]}]``: all keys of one of them match."""

    metric: Annotated[Any, BeforeValidator(read_metric), WithJsonSchema(METRIC_SCHEMA)] = None
    """What decides which trial is best, e.g. ``val/accuracy``; several with ``sweep=optuna``: ``[val/accuracy,
    val/loss]``. null: what trials choose their best checkpoint by."""

    mode: Annotated[Any, BeforeValidator(read_mode), WithJsonSchema(MODE_SCHEMA)] = "auto"
    """Whether a smaller or a larger ``metric`` is better: ``min``, ``max``, or a list of one for each metric; ``auto``
    takes what is known of a metric, and refuses one of which nothing is."""

    scheduler: dict[str, Any] | None = None
    """What stops trials early that promise little, by the ``type`` of a scheduler; null: nothing does."""

    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of parallel trials; null: as many as resources allow. With ``num_workers: 0``, one at a time."""

    max_failed: Annotated[int, Field(ge=0)] | None = None
    """Number of trials that may fail before no more are started; null: any number."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds after which no more trials are started, and those that train end with a checkpoint; null: no limit."""

    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of what is drawn at random. The trials' own is ``run.seed``."""
