"""What a train loop finds under trainer=xgboost: what Ray's ``XGBoostTrainer`` sets up."""

from __future__ import annotations

import sys
from typing import Any

from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction


class World(LoopWorld):
    """A tracker through which the workers find each other, and XGBoost's communicator around the loop."""

    framework = "xgboost"


def _is_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["xgboost.collective"].get_world_size() > 1)


WATCHED = tuple(
    TrainingFunction(
        "xgboost.core", name, "xgboost", _is_joined, "xgboost.collective.CommunicatorContext", by_itself=True
    )
    for name in ("Booster.update", "Booster.boost")
)
