"""What a config may say to the lightgbm trainer; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rtrain.config.needs import Rules
from rtrain.trainers.lightgbm.partners import partner_rules
from rtrain.trainers.loops.boosting.conf import BoostingConf


@dataclass(kw_only=True)
class Conf(BoostingConf):
    """Boosts trees with LightGBM, on one worker or with the rows shared by many."""

    needs: ClassVar[Rules] = (*BoostingConf.needs, *partner_rules())

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """Return the full key of each parameter of LightGBM, by each of its names."""
        from rtrain.trainers.lightgbm.names import all_names, ours

        elsewhere = {
            **ours(),
            "device": "scaling.use_gpu",
            "device_type": "scaling.use_gpu",
        }
        found = {name: elsewhere.get(name, f"trainer.params.{name}") for name in all_names()} | elsewhere
        return {name: key for name, key in found.items() if key}
