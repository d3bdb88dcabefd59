"""Scores by cross-validation on the train split."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.model_selection import cross_validate as sklearn_cross_validate

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.trainers.sklearn.config import CrossValidationConf
from rtrain.trainers.sklearn.inputs import Inputs
from rtrain.trainers.sklearn.learner import fit_arguments

ERRORS = {"mae": "neg_mean_absolute_error", "mse": "neg_mean_squared_error"}
"""Our names of scorers that scikit-learn turns round, so that more is better."""


def cross_validate(
    estimator: Any, rows: Batch, info: DatasetInfo, conf: CrossValidationConf, seed: int
) -> dict[str, float]:
    """Return mean and standard deviation of each score over the folds.

    Args:
        estimator: Stays as it is; copies of it are fitted.
        rows: All rows of the train split.
        info: The dataset.
        conf: Folds and scores.
        seed: Decides which rows are in which fold.
    """
    scorers = _scorers(conf, info)
    kind = StratifiedKFold if info.task == "classification" else KFold
    found = sklearn_cross_validate(
        clone(estimator),
        Inputs(info).ready(rows.x),
        rows.y,
        scoring=scorers,
        cv=kind(conf.folds, shuffle=True, random_state=seed),
        params=fit_arguments(estimator, rows.weight),
        error_score="raise",
    )
    scores: dict[str, float] = {}
    for name, scorer in scorers.items():
        values = found[f"test_{name}"] * (-1 if ERRORS.get(name) == scorer else 1)
        scores |= {f"cv/{name}": float(values.mean()), f"cv/{name}_std": float(values.std())}
    return scores


def score_names(conf: CrossValidationConf, info: DatasetInfo) -> list[str]:
    """Return the names under which the scores are reported."""
    return [f"cv/{name}{end}" for name in _scorers(conf, info) for end in ("", "_std")]


def _scorers(conf: CrossValidationConf, info: DatasetInfo) -> dict[str, str]:
    """Return scikit-learn's scorers by the names that their scores are reported under."""
    usual = {"accuracy": "accuracy"} if info.task == "classification" else ERRORS
    return {name: name for name in conf.scoring} or usual
