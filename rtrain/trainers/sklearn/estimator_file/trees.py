"""Whether the parts of an estimator fit together where compiled code doesn't look: nodes of trees, averaged weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.linear_model._stochastic_gradient import BaseSGD
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils import check_array

from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.objects import parts_of


def check_trees(estimator: Any) -> None:
    """Check every tree and every average in ``estimator``, at any depth.

    Raises:
        CheckpointError: A child comes before its parent or doesn't exist, a feature does not exist, or an average has
            another shape than the weights.
    """
    for part in parts_of(estimator):
        if isinstance(part, BaseDecisionTree) and "tree_" in vars(part):
            _check_tree(part)
        elif isinstance(part, BaseForest) and "estimators_" in vars(part):
            _check_forest(part)
        elif isinstance(part, BaseHistGradientBoosting) and "_predictors" in vars(part):
            _check_boosted(part)
        elif isinstance(part, BaseSGD) and "coef_" in vars(part):
            _check_weights(part)


def _check_tree(estimator: Any) -> None:
    tree = estimator.tree_
    _require(type(tree) is Tree)
    nodes = tree.__getstate__()["nodes"]
    _require(tree.node_count == len(nodes) > 0 and tree.n_features == _num_features(estimator))
    inner = nodes["left_child"] != -1
    _check_nodes(inner, nodes["left_child"], nodes["right_child"], nodes["feature"], tree.n_features)


def _check_forest(forest: Any) -> None:
    """Check that all members are trees of its features: it hands them its rows unchecked."""
    for one in forest.estimators_:
        _require(isinstance(one, BaseDecisionTree) and _num_features(one) == _num_features(forest))


def _check_boosted(estimator: Any) -> None:
    num_features = _num_features(estimator)
    is_categorical = estimator._bin_mapper.is_categorical_
    _require(type(is_categorical) is np.ndarray and is_categorical.shape == (num_features,))
    _check_preprocessor(vars(estimator).get("_preprocessor"), num_features)
    for predictor in (one for step in estimator._predictors for one in step):
        _require(isinstance(predictor, TreePredictor))
        nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
        _require(type(nodes) is np.ndarray and nodes.ndim == 1 and len(nodes) > 0)
        inner = nodes["is_leaf"] == 0
        _check_nodes(inner, nodes["left"], nodes["right"], nodes["feature_idx"], num_features)
        _require(type(bits) is np.ndarray and bits.ndim == 2 and bits.shape[1] == 8)
        by_category = nodes[inner & (nodes["is_categorical"] != 0)]
        _require(bool((by_category["bitset_idx"] < len(bits)).all()))
        _require(bool((is_categorical[by_category["feature_idx"]] != 0).all()))


def _check_preprocessor(preprocessor: Any, num_features: int) -> None:
    """Check that what orders the columns for the trees leaves as many as there are, whatever the rows hold."""
    if preprocessor is None:
        return
    _require(type(preprocessor) is ColumnTransformer and _num_features(preprocessor) == num_features)
    for _, one, _ in preprocessor.transformers_:
        is_checked = type(one) is FunctionTransformer and _only_checks(one)
        _require(is_checked or type(one) is OrdinalEncoder or (isinstance(one, str) and one == "drop"))
    _require(np.shape(preprocessor.transform(np.zeros((2, num_features)))) == (2, num_features))


def _only_checks(transformer: Any) -> bool:
    func = transformer.func
    return isinstance(func, partial) and func.func is check_array and not func.args and not transformer.kw_args


def _check_weights(part: Any) -> None:
    """Check the weights, and the other arrays of stochastic gradient descent: compiled code fills them all."""
    num_features = _num_features(part)
    for name in ("coef", "intercept"):
        weights = vars(part).get(f"{name}_")
        for kept in (weights, *(vars(part).get(f"_{kind}_{name}") for kind in ("standard", "average"))):
            if kept is not None:
                _require(type(kept) is np.ndarray and kept.ndim > 0 and kept.size == np.size(weights) > 0)
                _require(name == "intercept" or kept.shape[-1] == np.shape(weights)[-1] == num_features)


def _check_nodes(inner: np.ndarray, left: np.ndarray, right: np.ndarray, feature: np.ndarray, num: int) -> None:
    """Check the nodes that have children."""
    places = np.flatnonzero(inner)
    for child in (left[inner].astype("int64"), right[inner].astype("int64")):
        _require(bool(((child > places) & (child < len(inner))).all()))
    _require(bool(((feature[inner] >= 0) & (feature[inner] < num)).all()))


def _num_features(estimator: Any) -> int:
    found: Any = getattr(estimator, "n_features_in_", None)
    _require(isinstance(found, int | np.integer))
    return int(found)


def _require(right: bool) -> None:
    if not right:
        raise CheckpointError("a tree or an average in it refers to nodes or features that do not exist.")
