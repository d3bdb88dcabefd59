"""Whether the scorers of a cross-validation exist, and can score this estimator on these targets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names

from rtrain.config.diagnostics.meant.keys.words import translated
from rtrain.config.did_you_mean import closest, did_you_mean, nearest_or_all
from rtrain.errors import ConfigError, first_line
from rtrain.trainers.base import Job
from rtrain.trainers.sklearn.config import Conf, CrossValidationConf

SCORING = "trainer.cross_validation.scoring"


def check_scoring(estimator: Any, job: Job) -> None:
    """Find a scorer that scikit-learn doesn't have, or that fails here: ``f1`` is for two classes, say.

    Raises:
        ConfigError: Names it.
    """
    conf: Conf = job.conf.trainer
    names = [] if conf.cross_validation is None else conf.cross_validation.scoring
    if not names:
        return
    _check_names(names)
    y = np.concatenate([part["y"] for part in job.data.splits["train"].own_rows(0, 1)])
    model = _stand_in(estimator).fit(np.zeros((len(y), 1)), y)
    for name in names:
        try:
            with warnings.catch_warnings(action="ignore"):
                get_scorer(name)(model, np.zeros((len(y), 1)), y)
        except (ValueError, TypeError, AttributeError) as error:
            averaged = next((one for one in (f"{name}_macro", f"{name}_ovr") if one in get_scorer_names()), None)
            hint = None if averaged is None else did_you_mean(f"{SCORING}=[{averaged}]")
            raise ConfigError(f"{SCORING}: {name} can't be computed here: {first_line(error)}", hint) from error


def _check_names(names: list[str]) -> None:
    known = get_scorer_names()
    for name in names:
        if name not in known:
            meant = translated(SCORING, name, [("trainer.cross_validation", CrossValidationConf)])
            meant = meant or closest(name, known)
            hint = did_you_mean(f"{SCORING}=[{meant}]") if meant else nearest_or_all(name, known)
            raise ConfigError(f"{SCORING}: scikit-learn has no scorer '{name}'.", hint)


def _stand_in(estimator: Any) -> Any:
    """Return an estimator that learns nothing, and answers what another one does: classes, probabilities or numbers."""
    if not is_classifier(estimator):
        return DummyRegressor()
    methods: dict[str, Any] = {"predict_proba": DummyClassifier.predict_proba, "decision_function": _decisions}
    answers = {name: method if hasattr(estimator, name) else property() for name, method in methods.items()}
    return type(type(estimator).__name__, (DummyClassifier,), answers)()


def _decisions(model: DummyClassifier, x: np.ndarray) -> np.ndarray:
    """Stand for a method of the estimator, whose name scorers look up once more."""
    found: np.ndarray = DummyClassifier.predict_proba(model, x)
    return found[:, 1] if found.shape[1] == 2 else found


_decisions.__name__ = "decision_function"
