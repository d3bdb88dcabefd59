"""Whether each object in an estimator stands where scikit-learn puts its kind, with the methods of its class."""

from __future__ import annotations

from functools import partial
from itertools import product
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.multiclass import OneVsRestClassifier, _predict_binary
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.objects import objects_in, parts_of

FUNCTIONS = (partial, FunctionType, np.ufunc, type(np.mean))
FUNCTION_NAMES = frozenset({"f_", "func", "inverse_func", "score_func"})
"""Attributes in which scikit-learn's estimators keep functions."""
PLAIN = (type(None), bool, int, float, str)


def check_members(estimator: Any) -> None:
    """Check what compiled code and scikit-learn's own methods rely on.

    Raises:
        CheckpointError: An attribute hides a method, a function or a part of a tree stands where none belongs, or a
            random generator is at a position that does not exist.
    """
    if not isinstance(estimator, BaseEstimator):
        raise CheckpointError(f"it contains a {type(estimator).__name__}, which is not an estimator.")
    found = list(objects_in(estimator))
    placed = {id(one) for part in found for one in _placed(part)}
    for one in found:
        if isinstance(one, (*FUNCTIONS, Tree, TreePredictor, _BinMapper)) and id(one) not in placed:
            raise CheckpointError(f"it contains a {type(one).__name__} in a place where scikit-learn has none.")
        if isinstance(one, np.random.RandomState | np.random.Generator):
            _check_position(one)
    for part in parts_of(estimator):
        _check_attributes(part)


def check_rows(estimator: Any) -> None:
    """Check that the parts of one-vs-rest classifiers predict a number for each row.

    Unless there are more than two classes, their results become row numbers of a sparse matrix, which compiled code
    doesn't check. The inner parts come first; three numbers of rows show whatever NumPy would broadcast.

    Raises:
        CheckpointError: One predicts more or fewer.
    """
    for part in parts_of(estimator):
        if not isinstance(part, OneVsRestClassifier) or "estimators_" not in vars(part):
            continue
        if part.label_binarizer_.y_type_ == "multiclass":
            continue
        for member, num_rows in product(part.estimators_, (1, 2, 3)):
            found = _predict_binary(member, np.zeros((num_rows, part.n_features_in_)))
            if np.shape(found) != (num_rows,):
                raise CheckpointError("its one-vs-rest classifier has a part that doesn't predict one number per row.")


def _placed(part: Any) -> list[Any]:
    """Return the functions and the parts of trees that ``part`` holds in their places."""
    if isinstance(part, partial):
        return [part.func]
    if not isinstance(part, BaseEstimator):
        return []
    found = [value for name, value in vars(part).items() if name in FUNCTION_NAMES and isinstance(value, FUNCTIONS)]
    if isinstance(part, BaseDecisionTree):
        found.append(vars(part).get("tree_"))
    if isinstance(part, BaseHistGradientBoosting):
        steps = vars(part).get("_predictors", [])
        found += [vars(part).get("_bin_mapper"), *(one for step in steps for one in step)]
    return found


def _check_attributes(part: Any) -> None:
    for name, value in vars(part).items():
        usual = getattr(type(part), name, value)
        if usual is not value and not (isinstance(usual, PLAIN) and isinstance(value, PLAIN)):
            raise CheckpointError(f"its {type(part).__name__} overrides {name} of its class.")


def _check_position(generator: np.random.RandomState | np.random.Generator) -> None:
    """Check where a random generator is in the numbers that it has drawn ahead."""
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state(legacy=False)
    else:
        state = generator.bit_generator.state
    inner = state["state"]
    if not 0 <= inner.get("pos", 0) <= 624 or not 0 <= state.get("buffer_pos", 0) <= 4:
        raise CheckpointError("a random generator in it is at a position that does not exist.")
