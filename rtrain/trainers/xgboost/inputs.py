"""Rows of a dataset as XGBoost's matrices, without a copy of them as a data frame."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import xgboost

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import Columns, Dataset, DatasetInfo, ResidentSplit, Split, concatenated
from rtrain.datasets.mean_std import coarse
from rtrain.errors import ConfigError
from rtrain.trainers.loops.boosting.rounds import flat, usable_names
from rtrain.trainers.worker import Worker

log = logging.getLogger(__name__)
OF_RELEVANCE = ("map", "pre", "aucpr")
"""Metrics of rankings that XGBoost measures only where rows are relevant or not."""
MOST_GAIN = 1e-2
"""What all splits together should gain at least, a squared error: 10,000 times the least gain of a split."""


def make_matrix(
    split: Split, info: DatasetInfo, worker: Worker, params: dict[str, Any], ref: xgboost.DMatrix | None = None
) -> xgboost.DMatrix:
    """Return this worker's rows of a split, binned unless the parameters need them as they are.

    Args:
        split: Rows in memory are read where they are; streamed ones chunk by chunk, several times over.
        info: The dataset.
        worker: Rank and number of workers.
        params: XGBoost's parameters.
        ref: The train split, whose bins are used.
    """
    options: dict[str, Any] = {"nthread": params["nthread"], "enable_categorical": True}
    if params.get("booster") == "gblinear" or params.get("tree_method") in ("exact", "approx"):
        rows = concatenated(list(split.own_rows(worker.rank, worker.world_size)))
        return xgboost.DMatrix(**_arguments(rows, info), **options)
    if "max_bin" in params:
        options["max_bin"] = params["max_bin"]
    if isinstance(split, ResidentSplit):
        only = next(split.own_rows(worker.rank, worker.world_size))
        return xgboost.QuantileDMatrix(**_arguments(only, info), ref=ref, **options)
    return xgboost.QuantileDMatrix(_Chunks(split, info, worker), ref=ref, **options)


class _Chunks(xgboost.DataIter):
    """Gives XGBoost the rows of one worker, some at a time."""

    def __init__(self, split: Split, info: DatasetInfo, worker: Worker) -> None:
        self._split, self._info = split, info
        self._rank, self._world_size = worker.rank, worker.world_size
        self._chunks: Iterator[Columns] = iter(())
        super().__init__()

    def next(self, input_data: Any) -> bool:
        """Hand over the next chunk; False at the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        input_data(**_arguments(chunk, self._info))
        return True

    def reset(self) -> None:
        """Begin again."""
        self._chunks = self._split.own_rows(self._rank, self._world_size)


def _arguments(columns: Columns, info: DatasetInfo) -> dict[str, Any]:
    return {
        "data": flat(columns["x"]),
        "label": columns["y"],
        "weight": _weight(columns),
        "qid": _numbered(columns.get("group")),
        "base_margin": columns.get("base_margin"),
        "feature_names": usable_names(info),
        "feature_types": feature_types(info),
    }


def tell_of_digits(info: DatasetInfo) -> None:
    """Warn of features that XGBoost, which holds them as float32, can't tell apart."""
    found = coarse(info.mean, info.std, info.feature_names) if info.dtype == "float64" else []
    if found:
        log.warning(
            "XGBoost stores features as float32, which loses digits of %s; subtract a number from them, or use "
            "trainer=lightgbm",
            ", ".join(found[:5]),
        )


def tell_of_small_labels(dataset: Dataset, objective: str | None) -> None:
    """Warn of labels that differ so little that XGBoost, which ignores small gains, misses splits that matter."""
    split = dataset.splits["train"]
    if objective != "reg:squarederror" or not isinstance(split, ResidentSplit):
        return
    y = split.columns["y"].astype(np.float64)
    whole = float(np.square(y - y.mean()).sum())
    if 0 < whole < MOST_GAIN:
        log.warning(
            "labels differ so little (by %.3g) that XGBoost, which ignores splits that gain less than 1e-6, learns "
            "little or nothing; use a smaller unit, e.g. labels times a million, or trainer=lightgbm",
            float(y.std()),
        )


def check_weights(dataset: Dataset | None) -> None:
    """Refuse rows of one query that weigh differently: XGBoost weighs queries.

    Raises:
        ConfigError: Names the split and the rows.
    """
    if dataset is None or not {"weight", "group"} <= set(dataset.info.columns):
        return
    for name, split in dataset.splits.items():
        columns = concatenated(list(split.own_rows(0, 1)))
        if "weight" not in columns:
            continue
        differ = (np.diff(columns["group"]) == 0) & (np.diff(columns["weight"]) != 0)
        if differ.any():
            row = int(differ.argmax())
            weights = " and ".join(f"{one:g}" for one in columns["weight"][row : row + 2])
            raise ConfigError(
                f"dataset.weight: rows of one query of the split '{name}' weigh {weights}, but XGBoost weights "
                "queries.",
                "Give all rows of a query the same weight, or use trainer=lightgbm to weight rows",
            )


def check_grades(dataset: Dataset, params: Mapping[str, Any], evaluated: Collection[str]) -> None:
    """Refuse metrics and an objective of rankings that XGBoost has only for rows that are relevant or not.

    Args:
        dataset: The rows.
        params: XGBoost's parameters.
        evaluated: Splits that are evaluated.

    Raises:
        ConfigError: Names what needs grades of 0 and 1, and the grade.
    """
    if dataset.info.task != "ranking":
        return
    by_map = params.get("objective") == "rank:map"
    names = metrics_of(params)
    asked = next((f"eval_metric={one}" for one in names if one.partition("@")[0].rstrip("-") in OF_RELEVANCE), None)
    needs = dict.fromkeys([*evaluated, "train"], "objective=rank:map") if by_map else dict.fromkeys(evaluated, asked)
    for name, needing in needs.items():
        grade = None if needing is None else _first_grade(dataset.splits[name])
        if grade is not None:
            raise ConfigError(
                f"trainer.params.{needing}: XGBoost supports it only for grades 0 and 1, but a row of the split "
                f"'{name}' "
                f"has the grade {grade:g}.",
                to_try(f"trainer.params.{'objective=rank:ndcg' if by_map else 'eval_metric=ndcg'}"),
            )


def metrics_of(params: Mapping[str, Any]) -> list[str]:
    """Return the metrics that XGBoost's parameters ask for."""
    given = params.get("eval_metric", ())
    return [given] if isinstance(given, str) else list(given)


def _first_grade(split: Split) -> float | None:
    """Return the first grade of a row that is neither 0 nor 1."""
    for chunk in split.own_rows(0, 1):
        others = ~np.isin(chunk["y"], (0, 1))
        if others.any():
            return float(chunk["y"][others.argmax()])
    return None


def _numbered(group: Any) -> Any:
    """Return the queries of rows as 0, 1, ...: XGBoost wants numbers that ascend."""
    return None if group is None else np.cumsum(np.diff(group, prepend=group[:1]) != 0)


def _weight(columns: Columns) -> Any:
    """Return a weight per row; of a ranking one per query, that of its first row."""
    weight, group = columns.get("weight"), columns.get("group")
    if weight is None or group is None:
        return weight
    return weight[np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1])]


def feature_types(info: DatasetInfo) -> list[str] | None:
    """Return which features are categories; None where none is."""
    if not info.categories:
        return None
    return ["c" if name in info.categories else "q" for name in info.feature_names]
