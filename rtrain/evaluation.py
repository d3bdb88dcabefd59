"""Evaluate a checkpoint: the same metrics for every trainer, by scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.prediction import opened

NDCG_AT = (1, 3, 5, 10)
TINY = 1e-7
OTHER_DATA = tuple(f"dataset.{key}" for key in ("path", "url", "table", "query", "function", "name"))
"""Keys that say which data is read."""


def evaluate(
    place: str | Path, overrides: Sequence[str] = (), *, checkpoint: str = "best", split: str | None = None
) -> dict[str, float]:
    """Return the metrics of a checkpoint on the rows of a dataset, by name, and their number as ``num_rows``.

    Args:
        place: A run directory, or the folder of a checkpoint.
        overrides: Changes of the dataset of training: ``["dataset.path=new.parquet"]`` say.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        split: Evaluate this split of the dataset. None: all rows if the overrides name other data, else the split that
            training did not see.

    Raises:
        CheckpointError: There is no such checkpoint.
        ConfigError: An override is wrong, or the data has no labels.
    """
    with opened(place, overrides, checkpoint) as model:
        chosen = split or (None if _names_other_data(overrides) else _unseen(model.info))
        scores, targets, groups = [], [], []
        for chunk, found in model.scores(chosen, with_labels=True):
            if chunk.y is None:
                raise ConfigError("the data has no labels in some rows: there is nothing to compare predictions with.")
            scores.append(found)
            targets.append(chunk.y)
            groups.append(np.zeros(len(found), int) if chunk.group is None else chunk.group)
        if not scores:
            raise ConfigError("there are no rows to evaluate.")
        arrays = (np.concatenate(parts) for parts in (scores, targets, groups))
        return metrics_of(model.info, *arrays)


def metrics_of(info: DatasetInfo, scores: np.ndarray, y: np.ndarray, group: np.ndarray) -> dict[str, float]:
    """Return the metrics of the dataset's task.

    Args:
        info: The dataset.
        scores: (rows, classes), (rows, length, classes) or (rows,), as predictors give them.
        y: Targets as the dataset codes them.
        group: (rows,) numbers of the queries of a ranking.
    """
    tasks: dict[str, Callable[[], dict[str, float]]] = {
        "ranking": lambda: _ranking(scores, y, group),
        "regression": lambda: _regression(scores, y),
        "classification": lambda: _classification(scores, y),
    }
    found = tasks.get(info.task, lambda: _places(scores, y))()
    return {"num_rows": float(len(y)), **{name: float(value) for name, value in found.items()}}


def _classification(scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import f1_score, roc_auc_score

    best = scores.argmax(axis=1)
    found = {
        "loss": _log_loss(scores, y),
        "accuracy": (best == y).mean(),
        "f1_macro": f1_score(y, best, average="macro", zero_division=0),
    }
    if scores.shape[1] == 2 and len(np.unique(y)) == 2:
        found["auc"] = roc_auc_score(y, scores[:, 1])
    return found


def _log_loss(scores: np.ndarray, y: np.ndarray) -> float:
    chosen = np.take_along_axis(scores.astype(np.float64), y[..., None], axis=-1)
    return float(-np.log(np.clip(chosen, TINY, 1)).mean())


def _regression(scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    mse = mean_squared_error(y, scores)
    return {"mse": mse, "rmse": np.sqrt(mse), "mae": mean_absolute_error(y, scores), "r2": r2_score(y, scores)}


def _ranking(scores: np.ndarray, y: np.ndarray, group: np.ndarray) -> dict[str, float]:
    """Return the mean ndcg over queries, with gains of 2^grade - 1 as both boosting libraries have them."""
    from sklearn.metrics import ndcg_score

    queries = [np.flatnonzero(group == one) for one in np.unique(group)]
    gains = 2.0**y - 1
    found = {}
    for at in NDCG_AT:
        values = [
            ndcg_score([gains[rows]], [scores[rows]], k=at) if len(rows) > 1 and gains[rows].any() else 1.0
            for rows in queries
        ]
        found[f"ndcg@{at}"] = float(np.mean(values))
    return found


def _places(scores: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the metrics over all places of all rows."""
    loss = _log_loss(scores, y)
    return {"loss": loss, "accuracy": float((scores.argmax(axis=-1) == y).mean()), "perplexity": float(np.exp(loss))}


def _names_other_data(overrides: Sequence[str]) -> bool:
    """Return whether the rows are others than those of training, which holds rows that the model has seen."""
    keys = [word.lstrip("+~").partition("=")[0] for word in overrides]
    return any(key == "dataset" or key.startswith(OTHER_DATA) for key in keys)


def _unseen(info: DatasetInfo) -> str:
    return next(name for name in ("test", "val", "train") if info.num_rows.get(name))
