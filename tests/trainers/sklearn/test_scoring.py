"""A scorer is refused before training exactly where scikit-learn can't compute it of the fitted estimator."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.svm import SVC, LinearSVC

from rtrain.errors import ConfigError
from rtrain.trainers.sklearn.scoring import check_scoring

X = np.random.default_rng(0).normal(size=(60, 3))
SCORE = X @ [1.0, 0.5, -1.0]
TARGETS = {
    "two": (SCORE > 0).astype(int),
    "three": np.digitize(SCORE, [-0.5, 0.5]),
    "numbers": np.exp(SCORE),
}
CLASSIFIERS = {
    **{"logistic": LogisticRegression(), "forest": RandomForestClassifier(5), "linear svm": LinearSVC(), "svm": SVC()},
    **{"boosting": GradientBoostingClassifier(n_estimators=3), "fast": HistGradientBoostingClassifier(max_iter=3)},
}
CASES = [(name, target) for name in CLASSIFIERS for target in ("two", "three")] + [("trees", "numbers")]


def computes(scorer, estimator, y):
    try:
        with warnings.catch_warnings(action="ignore"):
            scorer(estimator, X, y)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def accepted(name, estimator, y):
    rows = SimpleNamespace(own_rows=lambda *_: [{"y": y}])
    conf = SimpleNamespace(trainer=SimpleNamespace(cross_validation=SimpleNamespace(scoring=[name])))
    try:
        check_scoring(estimator, SimpleNamespace(conf=conf, data=SimpleNamespace(splits={"train": rows})))
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(("name", "target"), CASES)
def test_what_is_refused_is_what_fails(name, target):
    y, estimator = TARGETS[target], {**CLASSIFIERS, "trees": RandomForestRegressor(5)}[name]
    fitted = estimator.fit(X, y)
    wrong = {
        scorer: "refused" if works else "accepted"
        for scorer in get_scorer_names()
        if (works := computes(get_scorer(scorer), fitted, y)) != accepted(scorer, estimator, y)
    }
    assert not wrong
