"""XGBoost's metrics: which way they get better, and those of sums of trees, which are not probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xgboost
from xgboost import collective

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.boosting.margins import sums_of_margins

LARGER = ("auc", "aucpr", "pre", "ndcg", "ndcg-", "map", "map-", "interval-regression-accuracy")
SMALLER = (
    *("rmse", "rmsle", "mae", "mape", "mphe", "logloss", "mlogloss", "error", "merror", "quantile", "expectile"),
    *("poisson-nloglik", "gamma-nloglik", "cox-nloglik", "aft-nloglik", "tweedie-nloglik", "gamma-deviance"),
)
MODES: Mapping[str, str] = dict.fromkeys(LARGER, "max") | dict.fromkeys(SMALLER, "min")
"""All metrics of XGBoost; ``xgboost.callback.EarlyStopping`` minimises the same ones but for the last of ``LARGER``."""

OF_PROBABILITIES = ("logloss", "mlogloss", "error")


def deciding(names: Sequence[str]) -> str:
    """Return the metric that decides: the last one, as in ``xgboost.train``."""
    return names[-1]


class OfMargins:
    """The metrics of a classification whose trees give sums (margins), called as XGBoost calls a metric.

    XGBoost itself would take the sums for probabilities.
    """

    def __init__(self, info: DatasetInfo) -> None:
        self._num_classes = info.num_classes

    def __call__(self, margins: np.ndarray, matrix: xgboost.DMatrix) -> list[tuple[str, float]]:
        """Return name and value of each metric, for margins of (rows,) or (rows, classes)."""
        weight = matrix.get_weight()
        own = sums_of_margins(margins, matrix.get_label(), weight if len(weight) else None)
        wrong, loss, total = collective.allreduce(own, collective.Op.SUM)
        names = ("error", "logloss") if self._num_classes == 2 else ("merror", "mlogloss")
        return list(zip(names, (float(wrong / total), float(loss / total)), strict=True))


class Metrics:
    """What is measured after each round: XGBoost's metrics, then those that are functions.

    Args:
        functions: Each takes predictions and a matrix, as with ``xgboost.train``, and returns a name and a value, or a
            list of such pairs.
        output_margin: They get sums of trees, as with ``xgboost.train`` where the objective is a function.
    """

    def __init__(self, functions: Sequence[Any], *, output_margin: bool) -> None:
        self._functions, self._output_margin = functions, output_margin

    def measure(
        self, booster: xgboost.Booster, evals: Sequence[tuple[xgboost.DMatrix, str]], round_number: int
    ) -> dict[str, float]:
        """Return each metric of each split over the rows of all workers, e.g. ``test/logloss``."""
        found: dict[str, float] = {}
        text = booster.eval_set(evals, round_number) if evals else ""
        for part in text.split("\t")[1:]:
            name, value = part.rsplit(":", 1)
            split = next(split for _, split in evals if name.startswith(f"{split}-"))
            found[f"{split}/{name.removeprefix(f'{split}-')}"] = float(value)
        for matrix, split in evals if self._functions else ():
            predictions = booster.predict(matrix, output_margin=self._output_margin)
            found |= {f"{split}/{name}": value for name, value in self._own(predictions, matrix)}
        return found

    def _own(self, predictions: np.ndarray, matrix: xgboost.DMatrix) -> Iterator[tuple[str, float]]:
        """Yield the functions' metrics; on several workers the mean of theirs, as XGBoost's own loop has it."""
        for function in self._functions:
            found = function(predictions, matrix)
            for name, value in found if isinstance(found, list) else [found]:
                values = collective.allreduce(np.array([value], np.float64), collective.Op.SUM)
                yield str(name), float(values[0]) / collective.get_world_size()


def gives_margins(conf: Any) -> bool:
    """Return whether the trees of a classification give sums and not probabilities."""
    return conf.objective_function is not None or conf.params.get("objective") == "binary:logitraw"
