"""Whether the text of a LightGBM model fits together where LightGBM doesn't look: counts, nodes, categories."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rtrain.trainers.lightgbm.names import OBJECTIVES

END, PARAMETERS = b"end of trees\n", b"\nparameters:\n"
HEADER = {"version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names"}
HEADER |= {"feature_infos", "tree_sizes"}
OPTIONAL = {"objective", "monotone_constraints", "average_output"}
TREE = {"num_leaves", "num_cat", "leaf_value", "leaf_weight", "leaf_count", "is_linear", "shrinkage"}
TREE |= {"internal_value", "internal_weight", "internal_count"}
SPLITS = {"split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"}
OF_CATEGORIES = {"cat_boundaries", "cat_threshold"}
LINEAR = {"leaf_const", "num_features", "leaf_features", "leaf_coeff"}
INTEGERS = re.compile(rb"-?\d{1,9}(?: -?\d{1,9})*")
BITS = re.compile(rb"\d{1,10}(?: \d{1,10})*")
ONE = rb"-?(?:\d{1,25}(?:\.\d{1,25})?(?:e[-+]?\d{1,3})?|inf|nan)"
NUMBERS = re.compile(ONE + rb"(?: " + ONE + rb")*")
OBJECTIVE = re.compile(rb"(\w+)((?: \w+(?::" + ONE + rb")?)*)")
KEPT = re.compile(
    rb"\[(?:objective: \w+|alpha: " + ONE + rb"|sigmoid: " + ONE + rb"|reg_sqrt: [01]|linear_tree: [01])\]"
)
"""Parameters that predictions depend on."""


def checked(content: bytes) -> bytes:
    """Return what counts of the text of a model: header, trees, and those parameters that predictions depend on.

    Raises:
        ValueError: It is of a form that LightGBM doesn't write, or two parts of it don't fit together.
    """
    head, _, rest = content.partition(b"\n\n")
    lines = head.split(b"\n")
    _require(lines[0] == b"tree", "it doesn't start with 'tree'")
    header = _keys(lines[1:])
    _check_header(header)
    num_features = _count(header, "max_feature_idx", 0) + 1
    sizes = _integers(header, "tree_sizes").tolist() if header["tree_sizes"] else []
    _require(min(sizes, default=1) > 0, "tree_sizes has a value below 1")
    _require(len(sizes) % _count(header, "num_tree_per_iteration", 1) == 0, "it has an incomplete round")
    place = 0
    for number, size in enumerate(sizes):
        try:
            _check_block(rest[place : place + size], number, num_features)
        except ValueError as error:
            raise ValueError(f"tree {number}: {error}") from error
        place += size
    _require(rest[place : place + len(END)] == END, "tree_sizes don't fit its trees")
    kept = [line for line in rest[place:].partition(PARAMETERS)[2].split(b"\n") if KEPT.fullmatch(line)]
    last = [END, PARAMETERS, *(line + b"\n" for line in kept), b"\nend of parameters\n\npandas_categorical:null\n"]
    return head + b"\n\n" + rest[:place] + b"".join(last)


def _check_header(header: Mapping[str, bytes]) -> None:
    _require(HEADER <= set(header) <= HEADER | OPTIONAL, "its header has missing or unknown keys")
    num_features, num_outputs = _count(header, "max_feature_idx", 0) + 1, _count(header, "num_class", 1)
    _require(_count(header, "num_tree_per_iteration", 1) == num_outputs, "num_tree_per_iteration is not num_class")
    _require(header["version"] == b"v4" and header.get("average_output", b"") == b"", "its version is wrong")
    _count(header, "label_index", 0)
    for name in ("feature_names", "feature_infos"):
        names = header[name].split(b" ")
        _require(len(names) == num_features and all(names), f"{name} don't fit max_feature_idx")
    if "monotone_constraints" in header:
        _integers(header, "monotone_constraints", num_features)
    if "objective" in header:
        found = OBJECTIVE.fullmatch(header["objective"])
        _require(found is not None and found[1].decode() in OBJECTIVES, "its objective is unknown")
        assert found is not None
        classes = [one for one in found[2].split(b" ") if one.startswith(b"num_class")]
        several = [b"num_class:%d" % num_outputs] if found[1].startswith(b"multiclass") else []
        _require(classes == several and (num_outputs == 1 or bool(several)), "its objective doesn't fit num_class")


def _check_block(block: bytes, number: int, num_features: int) -> None:
    begin, end = b"Tree=%d\n" % number, b"\n\n\n"
    _require(block.startswith(begin) and block.endswith(end), "tree_sizes don't fit it")
    tree = _keys(block[len(begin) : -len(end)].split(b"\n"))
    num_leaves, num_cat = _count(tree, "num_leaves", 1), _count(tree, "num_cat", 0)
    is_linear = tree.get("is_linear") == b"1"
    _require(is_linear or tree.get("is_linear") == b"0", "is_linear is neither 0 nor 1")
    named = TREE | SPLITS | (OF_CATEGORIES if num_cat > 0 else set()) | (LINEAR if is_linear else set())
    _require(set(tree) == named, "it has missing or unknown keys")
    _check_numbers(tree, "shrinkage", 1)
    for name in ("leaf_value", "leaf_weight", "leaf_count"):
        is_left_out = num_leaves == 1 and not is_linear and name != "leaf_value" and not tree[name]
        _check_numbers(tree, name, 0 if is_left_out else num_leaves)
    for name in ("split_gain", "internal_value", "internal_weight", "internal_count"):
        _check_numbers(tree, name, num_leaves - 1)
    _check_nodes(tree, num_leaves, num_features)
    _check_splits(tree, num_leaves - 1, num_cat)
    if is_linear:
        _check_linear(tree, num_leaves, num_features)


def _check_nodes(tree: Mapping[str, bytes], num_leaves: int, num_features: int) -> None:
    """Check that each node's children come after it, which makes it a tree."""
    features = _integers(tree, "split_feature", num_leaves - 1)
    _require(bool(((features >= 0) & (features < num_features)).all()), "it uses features that do not exist")
    for name in ("left_child", "right_child"):
        child = _integers(tree, name, num_leaves - 1)
        follows = (child > np.arange(num_leaves - 1)) & (child < num_leaves - 1)
        _require(bool((follows | ((child < 0) & (child >= -num_leaves))).all()), f"{name} points to no node")


def _check_splits(tree: Mapping[str, bytes], num_splits: int, num_cat: int) -> None:
    kinds = _integers(tree, "decision_type", num_splits)
    _require(bool(((kinds >= 0) & (kinds < 12)).all()), "it has splits of an unknown type")
    _check_numbers(tree, "threshold", num_splits)
    thresholds = tree["threshold"].split()
    places = [float(thresholds[at]) for at in np.flatnonzero(kinds % 2)]
    _require(bool(np.isin(places, np.arange(num_cat)).all()), "it has splits by categories that do not exist")
    if num_cat > 0:
        bounds = _integers(tree, "cat_boundaries", num_cat + 1)
        _require(bounds[0] == 0 and bool((np.diff(bounds) >= 0).all()), "cat_boundaries are out of order")
        bits = tree["cat_threshold"]
        _require(BITS.fullmatch(bits) is not None and bits.count(b" ") + 1 == bounds[-1], "cat_threshold doesn't fit")
        _require(max(map(int, bits.split(b" "))) < 2**32, "cat_threshold doesn't fit")


def _check_linear(tree: Mapping[str, bytes], num_leaves: int, num_features: int) -> None:
    _check_numbers(tree, "leaf_const", num_leaves)
    counts = _integers(tree, "num_features", num_leaves)
    _require(bool((counts >= 0).all()), "num_features has a negative number")
    # LightGBM writes more than one space between leaves.
    joined = {name: b" ".join(tree[name].split()) for name in ("leaf_features", "leaf_coeff")}
    _check_numbers(joined, "leaf_coeff", int(counts.sum()))
    used = _integers(joined, "leaf_features", int(counts.sum()))
    _require(bool(((used >= 0) & (used < num_features)).all()), "it uses features that do not exist")


def _keys(lines: list[bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for line in lines:
        key, _, value = line.partition(b"=")
        name = key.decode()
        _require(name not in found, f"it contains {name!r} twice")
        found[name] = value
    return found


def _count(values: Mapping[str, bytes], name: str, least: int) -> int:
    found = values.get(name, b"")
    _require(found.isdigit() and len(found) < 10 and int(found) >= least, f"{name} has a wrong value")
    return int(found)


def _integers(values: Mapping[str, bytes], name: str, length: int | None = None) -> np.ndarray:
    value = values[name]
    _require(not value or INTEGERS.fullmatch(value) is not None, f"{name} contains values that are not numbers")
    found = np.array([int(one) for one in value.split()], np.int64)
    _require(length is None or len(found) == length, f"{name} has the wrong length")
    return found


def _check_numbers(values: Mapping[str, bytes], name: str, length: int) -> None:
    value = values[name]
    _require(not value or NUMBERS.fullmatch(value) is not None, f"{name} contains values that are not numbers")
    _require((value.count(b" ") + 1 if value else 0) == length, f"{name} has the wrong length")


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise ValueError(otherwise)
