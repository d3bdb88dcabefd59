"""Weights of another run meet the columns and classes for which they were learned at the same places."""

from __future__ import annotations

from collections.abc import Sequence

from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.trained import CheckpointMetadata

MOST_NAMES = 20
"""Columns that a hint lists."""


def check_same_places(job: Job, wrote: CheckpointMetadata) -> None:
    """Refuse columns, categories and classes that stand elsewhere than where ``run.init_from`` learned them.

    Those that it didn't know are accepted: a model may learn from other data.

    Raises:
        ConfigError: One of them has moved: the model would take it for another one.
    """
    if job.dataset is None or wrote.info is None:
        return
    before, now = wrote.info, job.dataset.info
    if (moved := _moved(before.feature_names, now.feature_names)) is not None:
        is_order = len(before.feature_names) <= MOST_NAMES and set(before.feature_names) == set(now.feature_names)
        raise ConfigError(
            f"run.init_from: its model takes the column '{moved}' at another place than it has here.",
            f"Name the columns in its order: 'dataset.features=[{','.join(before.feature_names)}]'"
            if is_order
            else "Use the columns of its run in the same order (dataset.features), or leave run.init_from out.",
        )
    for name, names in now.categories.items():
        _check_names(f"values of '{name}'", before.categories.get(name, ()), names)
    _check_names("tokens" if now.task == "language-modeling" else "classes", before.class_names, now.class_names)


def check_num_classes(job: Job, wrote: CheckpointMetadata) -> None:
    """Refuse weights for another number of classes, as far as a model has an output for each class of its data.

    Raises:
        ConfigError: The last layer doesn't fit.
    """
    if job.dataset is None or wrote.info is None:
        return
    before, now = wrote.info, job.dataset.info
    if {before.task, now.task} == {"classification"} and before.num_classes != now.num_classes:
        raise ConfigError(
            f"run.init_from: its model has {before.num_classes} classes, and this data has {now.num_classes}.",
            "Its last layer doesn't fit: use data with as many classes, or leave run.init_from out.",
        )


def _check_names(what: str, before: Sequence[str], now: Sequence[str]) -> None:
    if (moved := _moved(before, now)) is None:
        return
    instead = before[now.index(moved)] if now.index(moved) < len(before) else None
    place = f"takes '{moved}' for '{instead}'" if instead is not None else f"has '{moved}' at another place"
    raise ConfigError(
        f"run.init_from: its model knows other {what}, and {place}.",
        "Train on the same ones as its run, or leave run.init_from out.",
    )


def _moved(before: Sequence[str], now: Sequence[str]) -> str | None:
    places = {name: place for place, name in enumerate(before)}
    return next((name for place, name in enumerate(now) if places.get(name, place) != place), None)
