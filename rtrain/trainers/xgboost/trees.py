"""Whether the parts of an XGBoost model fit together where XGBoost doesn't look: nodes, categories, groups, weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

LEARNER = {"attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param", "objective"}
ARRAYS = {
    **dict.fromkeys(("left_children", "right_children", "parents", "split_indices"), ">i4"),
    **dict.fromkeys(("split_conditions", "loss_changes", "sum_hessian"), ">f4"),
    **dict.fromkeys(("default_left", "split_type"), "|u1"),
}
"""Arrays of a tree with one value for each node."""
CATEGORIES = {
    **dict.fromkeys(("categories", "categories_nodes"), ">i4"),
    **dict.fromkeys(("categories_segments", "categories_sizes"), ">i8"),
}
LARGEST = 2**31 - 1
MAX_CATEGORIES = 2**24
"""XGBoost takes no larger one from the data."""
BIASES = ("ti+", "tj-")
"""Biases of the positions in a ranking."""
COUNT = re.compile(r"[0-9]{1,9}")
VALUE = r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:E-?[0-9]{1,3})?"
VALUES = re.compile(rf"{VALUE}|\[{VALUE}(?:,{VALUE})*\]")


def check_model(model: Any, num_features: int) -> None:
    """Check what XGBoost takes on trust when it loads a model, predicts with it, or trains on.

    Args:
        model: What ``read_ubjson`` returned.
        num_features: The columns of the data.

    Raises:
        ValueError: A part is missing or unknown, or two of them don't fit together.
    """
    learner = _keys(_keys(model, {"learner", "version"})["learner"], LEARNER)
    _require(_is_list(model["version"], int) and len(model["version"]) == 3, "its version is wrong")
    _require(_is_texts(learner["attributes"]), "its attributes are not text")
    for name in ("feature_names", "feature_types"):
        _require(_is_list(learner[name], str) and len(learner[name]) in (0, num_features), f"its {name} don't fit")
    params = learner["learner_model_param"]
    _require(_is_texts(params) and _count(params, "num_feature") == num_features, "it is for other features")
    counts = _count(params, "num_class"), _count(params, "num_target")
    _require(min(counts) <= 1, "it is for classes and for targets")
    _check_learner(learner, max(1, *counts), num_features)


def _check_learner(learner: Mapping[str, Any], num_outputs: int, num_features: int) -> None:
    scores = learner["learner_model_param"].get("base_score", "")
    _require(_length(scores) in (1, num_outputs), "its base_score doesn't fit its outputs")
    _check_objective(learner["objective"], num_outputs)
    booster = learner["gradient_booster"]
    name = booster.get("name") if isinstance(booster, dict) else None
    if name == "gblinear":
        _check_linear(_keys(booster, {"name", "model"})["model"], num_outputs, num_features, _length(scores))
        return
    if name == "dart":
        weights = _keys(booster, {"name", "gbtree", "weight_drop"})["weight_drop"]
        booster = booster["gbtree"]
    model = _keys(booster, {"name", "model"})["model"]
    _require(booster["name"] == "gbtree", "its booster is unknown")
    _check_trees(model, num_outputs, num_features)
    _require(_length(scores) == num_outputs or len(model["trees"]) > 0, "its base_score doesn't fit its outputs")
    if name == "dart":
        _require(_is_list(weights, float) and len(weights) == len(model["trees"]), "weight_drop doesn't fit its trees")


def _check_linear(model: Any, num_outputs: int, num_features: int, num_scores: int) -> None:
    rounds, weights = _keys(model, {"weights", "boosted_rounds"})["boosted_rounds"], _array(model, "weights", ">f4")
    _require(type(rounds) is int and rounds >= 0, "boosted_rounds has a wrong value")
    is_new = rounds == len(weights) == 0 and num_scores == num_outputs
    _require(is_new or len(weights) == (num_features + 1) * num_outputs, "weights has the wrong length")


def _check_objective(objective: Any, num_outputs: int) -> None:
    _require(isinstance(objective, dict) and isinstance(objective.get("name"), str), "its objective has no name")
    for key, value in objective.items():
        is_bias = key in BIASES and isinstance(value, np.ndarray) and value.dtype == ">f4"
        _require(key == "name" or is_bias or _is_texts(value), f"its objective contains {key}")
    if objective["name"].startswith("multi:"):
        _require(
            _count(objective.get("softmax_multiclass_param"), "num_class") == num_outputs > 1,
            "its objective is for another number of classes",
        )
    if objective["name"] == "reg:quantileerror":
        alphas = _keys(objective.get("quantile_loss_param")).get("quantile_alpha")
        _require(_length(alphas) == num_outputs, "its objective is for another number of quantiles")


def _check_trees(model: Any, num_outputs: int, num_features: int) -> None:
    parts = {"gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
    _keys({"cats": None, **model} if isinstance(model, dict) else model, {"cats", *parts})
    for part in _keys(model.get("cats", dict.fromkeys(("enc", "feature_segments", "sorted_idx"), ()))).values():
        _require(np.size(part) == 0, "it encodes categories itself")
    params, trees, groups = model["gbtree_model_param"], model["trees"], model["tree_info"]
    _require(_is_texts(params) and _count(params, "num_parallel_tree") > 0, "num_parallel_tree has a wrong value")
    _require(_is_list(trees, dict) and _count(params, "num_trees") == len(trees), "it has another number of trees")
    _require(_is_list(groups, int) and len(groups) == len(trees), "tree_info doesn't fit its trees")
    vector = any(_size_of_leaves(tree) > 1 for tree in trees)
    num_groups = 1 if vector else num_outputs
    _require(not trees or set(groups) == set(range(num_groups)), "tree_info doesn't fit its outputs")
    ends, size = model["iteration_indptr"], num_groups * _count(params, "num_parallel_tree")
    _require(
        _is_list(ends, int) and ends == list(range(0, len(trees) + 1, size)), "iteration_indptr doesn't fit its trees"
    )
    _require(ends[-1] == len(trees), "it has an incomplete round")
    for number, tree in enumerate(trees):
        try:
            _require(tree.get("id") == number, "its id differs")
            _check_tree(tree, num_features, num_outputs if vector else 1)
        except ValueError as error:
            raise ValueError(f"tree {number}: {error}") from error


def _size_of_leaves(tree: Mapping[str, Any]) -> int:
    return _count(tree.get("tree_param", {}), "size_leaf_vector")


def _check_tree(tree: Mapping[str, Any], num_features: int, size: int) -> None:
    more = {"leaf_weights"} if size > 1 else set()
    _keys(tree, {"id", "tree_param", "base_weights", *ARRAYS, *CATEGORIES, *more})
    params = tree["tree_param"]
    _require(_is_texts(params) and _count(params, "num_feature") == num_features, "it is for other features")
    _require(_size_of_leaves(tree) in (size, 0 if size == 1 else size), "its leaves have the wrong size")
    num_nodes = _count(params, "num_nodes")
    _require(num_nodes > 0, "it has no nodes")
    for name, dtype in ARRAYS.items():
        _array(tree, name, dtype, num_nodes)
    _array(tree, "base_weights", ">f4", num_nodes * size)
    inner = _check_nodes(tree, num_nodes, num_features, _count(params, "num_deleted"))
    if size > 1:
        num_leaves = num_nodes - int(inner.sum())
        _array(tree, "leaf_weights", ">f4", num_leaves * size)
        leaves = tree["right_children"][~inner]
        _require(bool(((leaves >= 0) & (leaves < num_leaves)).all()), "it has leaves that do not exist")
    _check_categories(tree)


def _check_nodes(tree: Mapping[str, Any], num_nodes: int, num_features: int, num_deleted: int) -> np.ndarray:
    """Check that each child has one parent, which makes it a tree, and return which nodes have children."""
    left, right, parents = tree["left_children"], tree["right_children"], tree["parents"]
    features = tree["split_indices"]
    deleted = (features == LARGEST) & (tree["default_left"] != 0)
    _require(int(deleted.sum()) == num_deleted and not deleted[0], "it has another number of deleted nodes")
    inner = left != -1
    _require(parents[0] in (-1, LARGEST), "its root has a parent")
    _require(bool(((parents[1:] >= 0) & (parents[1:] < num_nodes)).all()), "it has parents that do not exist")
    places = np.flatnonzero(inner)
    for child in (left[inner], right[inner]):
        _require(bool(((child > 0) & (child < num_nodes)).all()), "it has children that do not exist")
        _require(bool((parents[child] == places).all()), "it has a child of two nodes")
        _require(not bool(deleted[child].any()), "it has deleted children")
    _require(not bool((left[inner] == right[inner]).any()), "it has one child twice")
    _require(not bool((deleted & inner).any()), "it has deleted nodes with children")
    used = features[inner]
    _require(bool(((used >= 0) & (used < num_features)).all()), "it uses features that do not exist")
    _require(bool((features >= 0).all()), "it uses features that do not exist")
    return np.asarray(inner)


def _check_categories(tree: Mapping[str, Any]) -> None:
    categories, nodes, begins, sizes = (_array(tree, name, CATEGORIES[name]) for name in CATEGORIES)
    kinds = tree["split_type"]
    _require(bool((kinds <= 1).all()), "it has splits of an unknown type")
    _require(np.array_equal(nodes, np.flatnonzero(kinds)), "categories_nodes doesn't fit its splits")
    _require(len(begins) == len(sizes) == len(nodes), "the categories of its splits don't fit")
    _require(bool(((sizes > 0) & (sizes <= len(categories))).all()), "it has a split of no categories")
    _require(
        np.array_equal(np.append(begins, len(categories)), np.append(0, np.cumsum(sizes))), "its segments don't fit"
    )
    _require(bool(((categories >= 0) & (categories < MAX_CATEGORIES)).all()), "it has categories that do not exist")


def _array(owner: Mapping[str, Any], name: str, dtype: str, length: int | None = None) -> np.ndarray:
    found: Any = owner.get(name)
    _require(isinstance(found, np.ndarray) and found.dtype.str == dtype, f"{name} is not an array of {dtype}")
    _require(length is None or len(found) == length, f"{name} has the wrong length")
    return np.asarray(found)


def _keys(owner: Any, names: set[str] | None = None) -> Mapping[str, Any]:
    _require(isinstance(owner, dict), "a part of it is not a mapping")
    found: Mapping[str, Any] = owner
    strange = sorted(set(found) ^ (set(found) if names is None else names))
    _require(not strange, f"parts are unknown or missing: {', '.join(strange[:3])}")
    return found


def _count(owner: Any, name: str) -> int:
    found = owner.get(name) if isinstance(owner, dict) else None
    _require(isinstance(found, str) and COUNT.fullmatch(found) is not None, f"{name} has a wrong value")
    return int(str(found))


def _length(values: Any) -> int:
    """Return how many numbers a text holds, ``[1,2]`` or ``1``; 0 if it is something else."""
    return values.count(",") + 1 if isinstance(values, str) and VALUES.fullmatch(values) else 0


def _is_list(found: Any, kind: type) -> bool:
    return isinstance(found, list) and all(type(one) is kind for one in found)


def _is_texts(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(one, str) for one in found.values())


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise ValueError(otherwise)
