"""What a config may say to the xgboost trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rtrain.config.needs import Need, Rules, Way
from rtrain.trainers.loops.boosting.conf import BoostingConf

USED = Need(
    met=lambda way: way.info is None,
    otherwise="XGBoost doesn't use it with this booster and objective",
    instead="Leave it out, or choose trainer.params.booster and trainer.params.objective that do",
    keys=("trainer.params", "trainer.objective_function", "dataset"),
    of_rows=True,
)


def _unused(way: Way) -> Iterable[str]:
    """Return the keys of parameters that XGBoost says it doesn't use; of all parameters before the rows are read."""
    names: Iterable[str] = way.trainer.params
    if way.info is not None:
        from rtrain.trainers.xgboost.params import unused_params

        names = unused_params(way.trainer, way.info)
    return (f"trainer.params.{name}" for name in names)


@dataclass(kw_only=True)
class Conf(BoostingConf):
    """Boosts trees with XGBoost, on one worker or with the rows shared by many."""

    needs: ClassVar[Rules] = (*BoostingConf.needs, USED.of_found(_unused))

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """Return the full key of each parameter of XGBoost, by its name."""
        from rtrain.trainers.xgboost.names import OURS, known_names

        return {name: f"trainer.params.{name}" for name in known_names()} | OURS
