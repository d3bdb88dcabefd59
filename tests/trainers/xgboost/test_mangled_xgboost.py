"""No model of another account's ends the process: XGBoost gets no lengths and no indices that it wouldn't write."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xgboost
from changed_files import used_without_a_crash
from mangled_xgboost import KINDS, fitted, info, matrix, written

from rtrain.errors import CheckpointError
from rtrain.trainers.xgboost.model_file import MODEL, read_trees
from rtrain.trainers.xgboost.ubjson import read_ubjson

PROGRAM = Path(__file__).with_name("mangled_xgboost.py")


@cache
def content(kind):
    return bytes(fitted(kind).save_raw("ubj"))


def parts(model):
    """Return the learner, the model of its trees or weights, and the first tree."""
    booster = model["learner"]["gradient_booster"]
    inner = booster.get("gbtree", booster)["model"]
    return model["learner"], inner, inner.get("trees", [{}])[0]


def at(name, place, value):
    """Return what puts a value into an array of the first tree."""

    def change(learner, model, tree):
        tree[name] = tree[name].copy()
        tree[name][place] = value

    return change


def cycle(learner, model, tree):
    at("left_children", 1, 0)(learner, model, tree)
    at("parents", 0, 1)(learner, model, tree)


def shared(learner, model, tree):
    for name in ("left_children", "right_children"):
        at(name, 1, 5)(learner, model, tree)


def deleted(learner, model, tree):
    at("split_indices", 1, 2**31 - 1)(learner, model, tree)
    at("default_left", 1, 1)(learner, model, tree)
    tree["tree_param"]["num_deleted"] = "1"


def cut(name):
    return lambda learner, model, tree: tree.update({name: tree[name][:-1]})


def of_model(name, value):
    return lambda learner, model, tree: model.update({name: value})


def of_learner(name, value):
    return lambda learner, model, tree: learner["learner_model_param"].update({name: value})


HOSTILE = {
    "a cycle": ("gbtree", cycle),
    "a node as its own child": ("gbtree", at("left_children", 1, 1)),
    "a child of two": ("gbtree", shared),
    "a child beyond": ("gbtree", at("right_children", 0, 10**6)),
    "a negative child": ("gbtree", at("left_children", 0, -2)),
    "a parent beyond": ("gbtree", at("parents", 1, 10**9)),
    "a feature beyond": ("gbtree", at("split_indices", 0, 3)),
    "a negative feature": ("gbtree", at("split_indices", 0, -(2**31))),
    "too few nodes": ("gbtree", cut("left_children")),
    "another type": ("gbtree", lambda learner, model, tree: tree.update(parents=tree["parents"].astype(">i8"))),
    "no nodes": ("gbtree", lambda learner, model, tree: tree["tree_param"].update(num_nodes="0")),
    "an id twice": ("gbtree", lambda learner, model, tree: tree.update(id=1)),
    "no parents": ("gbtree", lambda learner, model, tree: tree.pop("parents")),
    "another key": ("gbtree", lambda learner, model, tree: tree.update(more=1)),
    "a deleted node": ("gbtree", deleted),
    "a node that is not deleted": ("pruned", at("default_left", -1, 0)),
    "a segment beyond": ("categorical", at("categories_segments", 1, 10**12)),
    "a huge segment": ("categorical", at("categories_sizes", 0, 10**12)),
    "a node without categories": ("categorical", at("split_type", 0, 1)),
    "categories of a node beyond": ("categorical", at("categories_nodes", 0, 10**6)),
    "a negative category": ("categorical", at("categories", 0, -5)),
    "a huge category": ("categorical", at("categories", 0, 2**31 - 1)),
    "too few categories": ("categorical", cut("categories")),
    "a group beyond": ("classes", of_model("tree_info", [10**6] * 9)),
    "a negative group": ("classes", of_model("tree_info", [-1] * 9)),
    "rounds beyond": ("classes", of_model("iteration_indptr", [0, 3, 6, 10**6])),
    "rounds out of order": ("classes", of_model("iteration_indptr", [0, 6, 3, 9])),
    "rounds of many trees": (
        "gbtree",
        lambda learner, model, tree: model["gbtree_model_param"].update(num_parallel_tree="1000000"),
    ),
    "no rounds": ("classes", of_model("iteration_indptr", [])),
    "more classes": ("classes", of_learner("num_class", "1000000")),
    "more targets": ("targets", of_learner("num_target", "99")),
    "no number": ("classes", of_learner("num_class", "x")),
    "more features": ("gbtree", of_learner("num_feature", "4294967295")),
    "classes of the objective": (
        "classes",
        lambda learner, model, tree: learner["objective"]["softmax_multiclass_param"].update(num_class="0"),
    ),
    "quantiles": (
        "quantiles",
        lambda learner, model, tree: learner["objective"]["quantile_loss_param"].update(quantile_alpha="[1E-1]"),
    ),
    "a leaf beyond": ("vectors", at("right_children", -1, 10**6)),
    "too few leaves": ("vectors", cut("leaf_weights")),
    "smaller leaves": ("vectors", lambda learner, model, tree: tree["tree_param"].update(size_leaf_vector="1")),
    "too few weights": ("gblinear", of_model("weights", np.zeros(3, ">f4"))),
    "too few drops": (
        "dart",
        lambda learner, model, tree: learner["gradient_booster"].update(weight_drop=[1.0]),
    ),
    "another booster": ("gbtree", lambda learner, model, tree: learner["gradient_booster"].update(name="dart")),
    "encoded categories": ("gbtree", lambda learner, model, tree: model["cats"].update(enc=[{}])),
}


@pytest.mark.parametrize(("kind", "change"), HOSTILE.values(), ids=HOSTILE)
def test_what_would_lead_out_of_memory_is_refused(tmp_path, kind, change):
    model = read_ubjson(content(kind))
    change(*parts(model))
    (tmp_path / MODEL).write_bytes(written(model))
    with pytest.raises(CheckpointError, match=r"is not passed to XGBoost: .*\n.*--trust"):
        read_trees(tmp_path, info(), trusted=False)


LONG = b"L\x7f" + b"\xff" * 7


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"{",
        b'{"learner": {}}',
        b"{" + LONG,
        b"{L" + bytes(7) + b"\1aS" + LONG,
        b"{L" + bytes(7) + b"\1a[$d#" + LONG,
        b"{L" + bytes(7) + b"\1a[#" + LONG,
        b"{L" + bytes(7) + b"\1a" + b"[" * 10**6,
        (b"[#L" + bytes(7) + b"\1") * 10**5,
        b"{L" + bytes(7) + b"\1aD" + bytes(8) + b"}",
    ],
    ids=["nothing", "cut", "JSON", "a key", "a text", "an array", "a list", "deep", "deep lists", "a double"],
)
def test_a_file_of_another_form_is_refused(tmp_path, other):
    (tmp_path / MODEL).write_bytes(other)
    with pytest.raises(CheckpointError):
        read_trees(tmp_path, info(), trusted=False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_xgboost_writes_is_read(tmp_path, kind):
    whole, rows = content(kind), matrix(kind)
    (tmp_path / MODEL).write_bytes(whole)
    found, expected = read_trees(tmp_path, info(), trusted=False), read_trees(tmp_path, info(), trusted=True)
    np.testing.assert_array_equal(found.predict(rows), expected.predict(rows))
    assert found.save_raw("ubj") == expected.save_raw("ubj")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_no_rounds_is_read(tmp_path, kind):
    rows = matrix(kind)
    booster = xgboost.Booster(KINDS[kind][0], [rows])
    (tmp_path / MODEL).write_bytes(booster.save_raw("ubj"))
    found = read_trees(tmp_path, info(), trusted=False)
    np.testing.assert_array_equal(found.predict(rows), booster.predict(rows))


def test_changed_models_of_all_kinds_are_refused_or_used_without_a_crash():
    assert used_without_a_crash(PROGRAM, seed=0, number=8) > len(KINDS)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a machine may be busy
@pytest.mark.parametrize("seed", range(100, 100 + max(1, int(os.environ.get("RTRAIN_TEST_FAULTS", "10")) // 10)))
def test_many_changed_models_are_refused_or_used_without_a_crash(seed):
    assert used_without_a_crash(PROGRAM, seed=seed, number=100) > 0
