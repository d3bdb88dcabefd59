"""Which way the metrics of a config get better, as Keras says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.trainers.loops.auto import AUTO
from rtrain.trainers.loops.directions import Directions

MODES = {"up": "max", "down": "min"}


def directions(metrics: Mapping[str, Mapping[str, Any]], builder: Builder) -> Directions:
    """Return which way metrics get better, of their config nodes by name; only an object of Keras says it."""
    own: dict[str, str | None] = {}
    for name, node in metrics.items():
        plain = {key: 2 if value == AUTO else value for key, value in node.items()}
        try:
            metric = builder.build(plain, f"trainer.metrics.{name}")
        except ConfigError:  # the check of the plugin names it, with what the dataset says in place of auto
            continue
        mode = MODES.get(str(getattr(metric, "_direction", None)))
        # A custom metric is judged by its name; a class of Keras without a direction has none.
        if mode is not None or type(metric).__module__.partition(".")[0] == "keras":
            own[name] = mode
    return Directions(own=own)
