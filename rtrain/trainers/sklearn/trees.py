"""Whether the parts of an estimator fit together where compiled code doesn't look: nodes of trees, averaged weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree

from rtrain.errors import CheckpointError


def check_trees(estimator: Any) -> None:
    """Check every tree and every average in ``estimator``, at any depth.

    Raises:
        CheckpointError: A child comes before its parent or doesn't exist, a feature does not exist, or an average has
            another shape than the weights.
    """
    for part in parts_of(estimator):
        if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
            _check_tree(part)
        elif isinstance(part, BaseHistGradientBoosting):
            _check_boosted(part)
        _check_averages(part)
        members = getattr(part, "estimators_", None)
        # A forest hands its rows to its trees without a look at their number of features.
        if members is not None and not hasattr(part, "estimators_features_"):
            _require(all(_num_features(one) == _num_features(part) for one in np.ravel(members)))


def parts_of(value: Any) -> Iterator[Any]:
    """Yield every object with attributes in ``value``, each once."""
    yield from _parts(value, set())


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, partial):
        inner = [value.func, value.args, value.keywords, vars(value)]
    elif isinstance(value, slice):
        inner = [value.start, value.stop, value.step]
    elif isinstance(value, np.ma.MaskedArray):
        inner = [value.data, value.fill_value, vars(value)]
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        inner = value.ravel().tolist()
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield value
        inner = list(vars(value).values())
    else:
        return
    for one in inner:
        yield from _parts(one, seen)


def _check_tree(estimator: Any) -> None:
    tree = estimator.tree_
    nodes = tree.__getstate__()["nodes"]
    _require(tree.node_count == len(nodes) > 0 and tree.n_features == _num_features(estimator))
    inner = nodes["left_child"] != -1
    _check_nodes(inner, nodes["left_child"], nodes["right_child"], nodes["feature"], tree.n_features)


def _check_boosted(estimator: Any) -> None:
    num_features = _num_features(estimator)
    _require(np.shape(estimator._bin_mapper.is_categorical_) == (num_features,))
    for predictor in (one for step in estimator._predictors for one in step):
        _require(isinstance(predictor, TreePredictor))
        nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
        _require(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes) > 0)
        inner = nodes["is_leaf"] == 0
        _check_nodes(inner, nodes["left"], nodes["right"], nodes["feature_idx"], num_features)
        _require(isinstance(bits, np.ndarray) and bits.ndim == 2 and bits.shape[1] == 8)
        _require(bool((nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)] < len(bits)).all()))


def _check_averages(part: Any) -> None:
    """Check that what stochastic gradient descent keeps beside its weights is as long: compiled code fills both."""
    for of in ("coef", "intercept"):
        weights: Any = getattr(part, f"{of}_", None)
        for kept in (vars(part).get(f"_{kind}_{of}") for kind in ("standard", "average")):
            if kept is not None:
                _require(np.size(weights) == np.size(kept) and np.ndim(kept) > 0)
                _require(of == "intercept" or np.shape(kept)[-1] == np.shape(weights)[-1] == _num_features(part))


def _check_nodes(inner: np.ndarray, left: np.ndarray, right: np.ndarray, feature: np.ndarray, num: int) -> None:
    """Check the nodes that have children."""
    places = np.flatnonzero(inner)
    for child in (left[inner].astype("int64"), right[inner].astype("int64")):
        _require(bool(((child > places) & (child < len(inner))).all()))
    _require(bool(((feature[inner] >= 0) & (feature[inner] < num)).all()))


def _num_features(estimator: Any) -> int:
    return int(getattr(estimator, "n_features_in_", -1))


def _require(right: bool) -> None:
    if not right:
        raise CheckpointError("a tree or an average in it leads to nodes or features that do not exist.")
