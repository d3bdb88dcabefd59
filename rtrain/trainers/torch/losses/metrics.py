"""Which way the metrics of a config get better, as torchmetrics says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.config.targets.builder import Builder
from rtrain.trainers.loops.directions import Directions

TASKS = ("Binary", "Multiclass", "Multilabel")


def directions(metrics: Mapping[str, Mapping[str, Any]], builder: Builder) -> Directions:
    """Return which way metrics get better, of their config nodes by name."""
    kinds = {
        name: builder.locate(str(node["_target_"]), f"trainer.metrics.{name}._target_")
        for name, node in metrics.items()
    }
    found = {name: direction_of(kind) for name, kind in kinds.items()}
    # A custom metric is judged by its name; a class of torchmetrics without a direction has none.
    return Directions(own={name: mode for name, mode in found.items() if mode is not None or _is_known(kinds[name])})


def _is_known(kind: Any) -> bool:
    return str(getattr(kind, "__module__", "")).partition(".")[0] == "torchmetrics"


def direction_of(kind: Any) -> str | None:
    """Return which way a class of torchmetrics gets better: ``min``, ``max``, or None if it doesn't say."""
    import torchmetrics.classification  # takes seconds; most configs add no metrics

    name = getattr(kind, "__name__", "")
    # What chooses by an argument `task` leaves it to the classes of the tasks, which agree.
    kinds = (kind, *(getattr(torchmetrics.classification, f"{task}{name}", None) for task in TASKS))
    larger = (getattr(one, "higher_is_better", None) for one in kinds)
    return next(("max" if one else "min" for one in larger if isinstance(one, bool)), None)
