"""Whatever the classifier of scikit-learn, the likeliest class is the one that it predicts itself."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

from rtrain.trainers.sklearn.outputs import has_probabilities, predict_rows

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(90, 4)))
Y = (X @ [1.0, -1.0, 0.5, 0.2] + 0.6 * RNG.normal(size=90) > 0.5).astype(int)
NEED_MORE = {
    "ClassifierChain",
    "MultiOutputClassifier",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
}
NEED_MORE |= {
    "SelfTrainingClassifier",
    "StackingClassifier",
    "VotingClassifier",
    "FixedThresholdClassifier",
    "TunedThresholdClassifierCV",
}
EVERY = {name: kind for name, kind in all_estimators(type_filter="classifier") if name not in NEED_MORE}
THRESHOLDS = {
    "fixed": FixedThresholdClassifier(LogisticRegression(), threshold=0.9),
    "low": FixedThresholdClassifier(LogisticRegression(), threshold=0.1),
    "tuned": TunedThresholdClassifierCV(LogisticRegression(), scoring="f1"),
    "pipeline": make_pipeline(StandardScaler(), FixedThresholdClassifier(LogisticRegression(), threshold=0.9)),
}


def predictions(estimator):
    with warnings.catch_warnings(action="ignore"):
        estimator.fit(X, Y)
        return predict_rows(estimator, X, 2).argmax(1), estimator.predict(X)


@pytest.mark.parametrize("name", EVERY)
def test_the_likeliest_class_is_the_prediction(name):
    ours, own = predictions(EVERY[name]())
    np.testing.assert_array_equal(ours, own)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_threshold_decides(name):
    ours, own = predictions(THRESHOLDS[name])
    np.testing.assert_array_equal(ours, own)
    assert not has_probabilities(THRESHOLDS[name])
    assert (own != THRESHOLDS[name].predict_proba(X).argmax(1)).any() or name == "tuned"
