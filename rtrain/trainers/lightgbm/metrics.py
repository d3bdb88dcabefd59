"""LightGBM's metrics: which way they get better, and those of sums of trees, which are not probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lightgbm
import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.names import main_name
from rtrain.trainers.loops.boosting.margins import sums_of_margins

LARGER = ("auc", "auc_mu", "average_precision", "map", "ndcg", "r2")
"""LightGBM calls all of these so but ``r2``, which is 1 for a perfect model."""
SMALLER = (
    *("l1", "l2", "rmse", "quantile", "mape", "huber", "fair", "poisson", "gamma", "gamma_deviance", "tweedie"),
    *("binary_logloss", "binary_error", "multi_logloss", "multi_error"),
    *("cross_entropy", "cross_entropy_lambda", "kullback_leibler"),
)
MODES: Mapping[str, str] = dict.fromkeys(LARGER, "max") | dict.fromkeys(SMALLER, "min")
METRICS = (
    *(*LARGER, *SMALLER, "multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr", "binary", "kldiv"),
    *("lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart", "mean_average_precision"),
    *("mean_absolute_error", "mae", "regression_l1", "mean_squared_error", "mse", "regression_l2", "regression"),
    *("root_mean_squared_error", "l2_root", "mean_absolute_percentage_error", "xentropy", "xentlambda"),
)
"""All names of LightGBM's metrics; ``multi_error`` and ``ndcg`` may say which places count, after an @."""

OF_PROBABILITIES = ("binary_logloss", "binary_error", "multi_logloss", "cross_entropy", "kullback_leibler")


def mode_of(name: str, larger: bool) -> str:
    """Return which way a metric gets better, e.g. ``val/auc``, of which LightGBM says whether it is larger then."""
    return MODES.get(name.rpartition("/")[2].partition("@")[0], "max" if larger else "min")


def deciding(names: Sequence[str]) -> str:
    """Return the metric that decides: the first one, as in ``lightgbm.train``; of rankings at the last place."""
    return next(name for name in reversed(names) if name.partition("@")[0] == names[0].partition("@")[0])


def needs_margins(conf: Conf, info: DatasetInfo) -> bool:
    """Return whether LightGBM would measure sums of trees as if they were probabilities."""
    given = any(main_name(name) == "metric" for name in conf.params)
    return info.task == "classification" and conf.objective_function is not None and not given


class OfMargins:
    """The metrics of a classification whose trees give sums (margins), called as LightGBM calls a metric.

    LightGBM itself would take the sums for probabilities.
    """

    def __init__(self, info: DatasetInfo) -> None:
        self._num_classes = info.num_classes

    def __call__(self, margins: np.ndarray, data: lightgbm.Dataset) -> list[tuple[str, float, bool]]:
        """Return name, value and direction of each metric, for margins of (rows,) or (rows, classes)."""
        weight = data.get_weight()
        wrong, loss, total = sums_of_margins(margins, np.asarray(data.get_label()), weight)
        kind = "binary" if self._num_classes == 2 else "multi"
        return [(f"{kind}_logloss", float(loss / total), False), (f"{kind}_error", float(wrong / total), False)]
