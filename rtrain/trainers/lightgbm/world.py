"""What a train loop finds under trainer=lightgbm: what Ray's ``LightGBMTrainer`` sets up."""

from __future__ import annotations

from typing import Any

from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction


class World(LoopWorld):
    """What ``ray.train.lightgbm.get_network_params()`` returns: the addresses of all workers."""

    framework = "lightgbm"
    backend = "ray.train.lightgbm.LightGBMConfig"


def _is_joined(booster: Any, *_: Any, **__: Any) -> bool:
    return bool(getattr(booster, "_network", False))


JOINS = "ray.train.lightgbm.get_network_params(), among its parameters"
WATCHED = (TrainingFunction("lightgbm.basic", "Booster.update", "lightgbm", _is_joined, JOINS),)
