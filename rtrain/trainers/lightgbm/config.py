"""What a config may say to the lightgbm trainer; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass

from rtrain.trainers.boosting_conf import BoostingConf


@dataclass(kw_only=True)
class Conf(BoostingConf):
    """Boosts trees with LightGBM, on one worker or with the rows shared by many."""
