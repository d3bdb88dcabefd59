"""No model of another account's ends the process: LightGBM gets no counts and no indices that it wouldn't write."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from changed_files import used_without_a_crash
from mangled_lightgbm import KINDS, X, data, fitted, params, with_sizes

from rtrain.errors import CheckpointError
from rtrain.trainers.lightgbm.model_file import MODEL, read_trees

PROGRAM = Path(__file__).with_name("mangled_lightgbm.py")


@cache
def text(kind):
    return fitted(kind).model_to_string()


HOSTILE = {
    "no trees in a round": ("gbdt", "num_tree_per_iteration=1", "num_tree_per_iteration=0"),
    "a part of a round": ("classes", "num_tree_per_iteration=3", "num_tree_per_iteration=2"),
    "no classes": ("gbdt", "num_class=1", "num_class=0"),
    "classes of the objective": ("classes", "num_class:3", "num_class:1000"),
    "an objective without classes": ("classes", "multiclass num_class:3", "binary sigmoid:1"),
    "an unknown objective": ("gbdt", "objective=binary", "objective=nonsense"),
    "more features": ("gbdt", "max_feature_idx=2", "max_feature_idx=99"),
    "too few features": ("gbdt", "max_feature_idx=2", "max_feature_idx=0"),
    "no sizes": ("gbdt", r"tree_sizes=.*\n", ""),
    "a size of nothing": ("gbdt", r"tree_sizes=\d+", "tree_sizes=0"),
    "a huge size": ("gbdt", r"tree_sizes=\d+", "tree_sizes=999999999"),
    "a negative size": ("gbdt", r"tree_sizes=\d+", "tree_sizes=-5"),
    "more leaves": ("gbdt", "num_leaves=4", "num_leaves=400"),
    "fewer leaves": ("gbdt", "num_leaves=4", "num_leaves=2"),
    "no leaves": ("gbdt", "num_leaves=4", "num_leaves=0"),
    "a cycle": ("gbdt", r"left_child=\S+ \S+", "left_child=1 0"),
    "a node as its own child": ("gbdt", r"left_child=\S+", "left_child=0"),
    "a child beyond": ("gbdt", r"right_child=\S+", "right_child=1000000"),
    "a leaf beyond": ("gbdt", r"right_child=\S+", "right_child=-1000000"),
    "a feature beyond": ("gbdt", r"split_feature=\S+", "split_feature=1000000"),
    "a negative feature": ("gbdt", r"split_feature=\S+", "split_feature=-1"),
    "too few values": ("gbdt", r"leaf_value=\S+ ", "leaf_value="),
    "too few thresholds": ("gbdt", r"threshold=\S+ ", "threshold="),
    "words": ("gbdt", r"threshold=\S+", "threshold=x"),
    "no threshold": ("gbdt", r"threshold=.*\n", ""),
    "a key twice": ("gbdt", r"(num_cat=0\n)", r"\1\1"),
    "another key": ("gbdt", "num_cat=0", "num_cats=0"),
    "an unknown kind of split": ("gbdt", r"decision_type=\S+", "decision_type=127"),
    "a split by no categories": ("gbdt", r"decision_type=\S+", "decision_type=1"),
    "categories beyond": (
        "categorical",
        r"\nthreshold=(.*) \S+\ndecision_type=(.*) \S+",
        r"\nthreshold=\1 1000000\ndecision_type=\2 9",
    ),
    "bounds out of order": ("categorical", r"cat_boundaries=0 \d+", "cat_boundaries=0 -9"),
    "bounds beyond": ("categorical", r"(cat_boundaries=.*) \d+", r"\1 1000000"),
    "too few bits": ("categorical", r"cat_threshold=\d+ ", "cat_threshold="),
    "a huge number of bits": ("categorical", r"cat_threshold=\d+", "cat_threshold=9999999999"),
    "neither linear nor not": ("gbdt", "is_linear=0", "is_linear=3"),
    "a linear tree of nothing": ("gbdt", "is_linear=0", "is_linear=1"),
    "coefficients beyond": ("linear", r"num_features=\d", "num_features=9"),
    "a negative number of coefficients": ("linear", r"num_features=\d", "num_features=-1"),
    "features beyond": ("linear", r"leaf_features=\d(?=[^\n]*\d)|leaf_features=( +)\d", "leaf_features=77"),
    "a carriage return": ("gbdt", "num_cat=0\n", "num_cat=0\r"),
    "nothing after the trees": ("gbdt", "end of trees\n", ""),
}


@pytest.mark.parametrize("resized", [True, False], ids=["with sizes", "as it is"])
@pytest.mark.parametrize(("kind", "found", "other"), HOSTILE.values(), ids=HOSTILE)
def test_what_would_lead_out_of_memory_is_refused(tmp_path, kind, found, other, resized):
    changed = re.sub(found, other, text(kind), count=1)
    assert changed != text(kind)
    (tmp_path / MODEL).write_text(with_sizes(changed) if resized and "tree_sizes" not in found else changed, newline="")
    with pytest.raises(CheckpointError, match=r"written by another account.*\n.*--trust"):
        read_trees(tmp_path, trusted=False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_lightgbm_writes_is_read(tmp_path, kind):
    (tmp_path / MODEL).write_text(text(kind))
    found, expected = (read_trees(tmp_path, trusted=trusted) for trusted in (False, True))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert trees(found) == trees(expected)
    for name in ("objective", "alpha", "sigmoid", "reg_sqrt"):
        assert found.params[name] == expected.params[name]
    if kind != "forest":  # one can't start from another
        grown = [lightgbm.train(params(kind), data(kind), 1, init_model=one) for one in (found, expected)]
        assert trees(grown[0]) == trees(grown[1])


def trees(booster):
    whole = booster.model_to_string()
    return whole[: whole.index("feature_importances")]


@pytest.mark.parametrize(
    ("objective", "more"),
    [
        *((one, {}) for one in ("regression_l1", "huber", "fair", "poisson", "mape", "tweedie", "cross_entropy")),
        ("cross_entropy_lambda", {}),
        ("regression", {"reg_sqrt": True}),
        ("binary", {"sigmoid": 0.7}),
        (lambda predictions, _: (predictions, np.ones_like(predictions)), {"num_class": 3}),
    ],
)
def test_a_model_of_each_objective_is_read(tmp_path, objective, more):
    rows = lightgbm.Dataset(X, label=np.arange(200) % 2, feature_name=["größe", "b", "c"], params={"verbosity": -1})
    booster = lightgbm.train({**params("gbdt"), "objective": objective, **more}, rows, 2)
    (tmp_path / MODEL).write_text(booster.model_to_string(), encoding="utf-8")
    found, expected = (read_trees(tmp_path, trusted=trusted) for trusted in (False, True))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.feature_name() == ["größe", "b", "c"]


def test_changed_models_of_all_kinds_are_refused_or_used_without_a_crash():
    assert used_without_a_crash(PROGRAM, seed=0, number=10) > len(KINDS)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a machine may be busy
@pytest.mark.parametrize("seed", range(100, 100 + max(1, int(os.environ.get("RTRAIN_TEST_FAULTS", "10")) // 10)))
def test_many_changed_models_are_refused_or_used_without_a_crash(seed):
    assert used_without_a_crash(PROGRAM, seed=seed, number=100) > 0
