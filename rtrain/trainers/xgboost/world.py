"""What a train loop finds under trainer=xgboost: what Ray's ``XGBoostTrainer`` sets up."""

from __future__ import annotations

from rtrain.trainers.loops.custom.world import LoopWorld


class World(LoopWorld):
    """A tracker through which the workers find each other, and XGBoost's communicator around the loop."""

    framework = "xgboost"
