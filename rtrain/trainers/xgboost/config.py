"""What a config may say to the xgboost trainer; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass

from rtrain.trainers.loops.boosting.conf import BoostingConf


@dataclass(kw_only=True)
class Conf(BoostingConf):
    """Boosts trees with XGBoost, on one worker or with the rows shared by many."""

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """Return the full key of each parameter of XGBoost, by its name."""
        from rtrain.trainers.xgboost.names import OURS, known_names

        return {name: f"trainer.params.{name}" for name in known_names()} | OURS
