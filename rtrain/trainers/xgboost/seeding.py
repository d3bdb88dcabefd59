"""XGBoost's random numbers, made to depend on nothing but the seed and the round: a resumed run draws the same."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

import xgboost

RANDOM = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
"""Shares of rows and columns; below 1 they are drawn at random."""


def starts_again(params: Mapping[str, Any]) -> bool:
    """Return whether a resumed run has to begin with the first round, to grow the trees of an uninterrupted one.

    That is where XGBoost carries from round to round what no model holds: bins that come from the rows which the first
    round drew, the bias of positions in a ranking, the order in which a linear model last took its features.
    """
    return (
        (params.get("tree_method") == "approx" and float(params.get("subsample", 1)) < 1)
        or str(params.get("lambdarank_unbiased", False)).lower() in ("true", "1")
        or (params.get("booster") == "gblinear" and params.get("feature_selector", "cyclic") == "shuffle")
    )


class Grower:
    """Grows the trees of one round; what is random depends on nothing but the seed and the round.

    XGBoost keeps the state of its random numbers in the updaters, which no checkpoint holds. Naming another updater and
    then the same again makes it new, so that a resumed run grows the same trees as one that was never interrupted.
    """

    def __init__(self, booster: xgboost.Booster, params: Mapping[str, Any]) -> None:
        self._booster = booster
        trees = params.get("booster") != "gblinear"
        self._random = trees and any(float(params.get(name, 1)) < 1 for name in RANDOM)

    def grow(self, matrix: xgboost.DMatrix, round_number: int, objective: Any) -> None:
        """Add the trees of a round."""
        if self._random:
            config = json.loads(self._booster.save_config())
            trees = config["learner"]["gradient_booster"]
            name = trees.get("gbtree", trees)["gbtree_train_param"]["updater"]  # those of dart lie deeper
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="(?s).*specified the `updater` parameter")
                for updater in ("prune", name):
                    self._booster.set_param({"updater": updater})
                    self._booster.save_config()  # has it take the parameter now
        self._booster.update(matrix, round_number, fobj=objective)
