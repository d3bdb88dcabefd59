"""Mistakes of a source that returns arrays are named before training, and what can only mean one thing is taken."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from rtrain.datasets.checked_columns import BESIDE
from rtrain.datasets.conf import RowsConf
from rtrain.datasets.in_memory import Content, resident_dataset
from rtrain.datasets.splitting.shares import split_parts
from rtrain.errors import DatasetError

ROWS = 60
Y = np.arange(ROWS) % 3
X = np.random.default_rng(0).normal(size=(ROWS, 2)).astype("float32")
NAMES = ("a", "b", "c")


def dataset(task="classification", names=NAMES, conf=None, **columns):
    """Return what a source returns of these columns, as docs/own-source.md says how."""
    whole = {"x": X, "y": Y, **columns}
    parts = {"train": {name: values for name, values in whole.items() if values is not None}}
    splits = split_parts(parts, conf or RowsConf(), stratify=task == "classification")
    names = names if task == "classification" else ()
    return resident_dataset(splits, Content(name="own", task=task, class_names=names, memory_reason="x"), RowsConf())


MISTAKES = {
    "labels in a column": ({"y": Y[:, None]}, r"y of the split 'train' is of shape \(60, 1\)"),
    "one-hot labels": ({"y": np.eye(3)[Y]}, r"y of the split 'train' is of shape \(60, 3\)"),
    "labels that count from 1": ({"y": Y + 1}, r"is 3: with 3 class names, a label is a whole number from 0 to 2"),
    "labels below 0": ({"y": Y - 1}, "is -1: with 3 class names"),
    "labels between": ({"y": Y / 2}, r"is 0.5: with 3 class names"),
    "no labels": ({"y": np.where(Y == 1, np.nan, Y)}, "is nan: with 3 class names"),
    "texts as labels": ({"y": np.array(NAMES)[Y]}, "y of the split 'train' is of type <U1: with 3 class names"),
    "objects as labels": ({"y": np.array(NAMES, object)[Y]}, "y of the split 'train' is of type object"),
    "a name too few": ({"names": NAMES[:2]}, "is 2: with 2 class names"),
    "one name": ({"names": NAMES[:1]}, "a classification needs class names, and there are 1"),
    "no names": ({"names": ()}, "a classification needs class names, and there are 0"),
    "several targets": ({"task": "regression", "y": X}, r"y of the split 'train' is of shape \(48, 2\)"),
    "targets in a column": ({"task": "regression", "y": X[:, :1]}, r"y of the split 'train' is of shape \(48, 1\)"),
    "no targets": ({"task": "regression", "y": np.where(Y == 1, np.nan, 0.5)}, "the target of row .* is nan"),
    "endless targets": ({"task": "regression", "y": np.where(Y == 1, np.inf, 0.5)}, "the target of row .* is inf"),
    "texts as targets": ({"task": "regression", "y": np.array(NAMES)[Y]}, "a regression needs numbers"),
    "texts as inputs": ({"x": X.astype(str)}, "x of the split 'train' is of type <U"),
    "objects as inputs": ({"x": X.astype(object)}, "x of the split 'train' is of type object"),
    "numbers as inputs": ({"x": X[:, 0]}, r"x of the split 'train' is of type float32 and shape \(48,\)"),
    "endless inputs": ({"x": np.where(Y[:, None] == 1, np.inf, X)}, "x of the split 'train': place 0 is infinite"),
    "lists": ({"x": X.tolist()}, "x of the split 'train' is a list, not an array"),
    "frames": ({"x": pd.DataFrame(X)}, r"is a pandas\.\S*DataFrame, not an array"),
    "series": ({"y": pd.Series(Y)}, r"is a pandas\.\S*Series, not an array"),
    "generators": ({"x": (row for row in X)}, "is a generator, not an array"),
    "no y": ({"y": None}, "returns no y for the split 'train'"),
    "no x": ({"x": None}, "returns no x for the split 'train'"),
    "another column": ({"wieght": X[:, 0]}, "returns a column 'wieght'"),
    "weights in a column": ({"weight": np.ones((ROWS, 1))}, r"weight of the split 'train' is of shape"),
    "weights below 0": ({"weight": -np.ones(ROWS)}, "a row of the split 'train' weighs -1.0"),
    "weights that are none": ({"weight": np.full(ROWS, np.nan)}, "a row of the split 'train' weighs nan"),
    "fewer labels than rows": ({"y": Y[:9]}, "differ in their number of rows: x has 60, y has 9"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_split_and_the_column(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(DatasetError, match=message):
        dataset(**arguments)


@pytest.mark.parametrize("split", ["val", "test"])
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("shape", [(9, 3), (9, 1), (9, 2, 2), (9, 2, 1)])
def test_rows_of_another_shape_than_those_of_train_are_named(split, task, shape):
    splits = {"train": {"x": X, "y": Y}, split: {"x": np.zeros(shape, "float32"), "y": Y[:9]}}
    content = Content(name="own", task=task, class_names=NAMES if task == "classification" else (), memory_reason="x")
    message = (
        rf"x of the split '{split}' has rows of shape {re.escape(str(shape[1:]))}, and those of 'train' have \(2,\)"
    )
    with pytest.raises(DatasetError, match=message):
        resident_dataset(splits, content, RowsConf())


def test_a_train_split_is_needed():
    with pytest.raises(DatasetError, match="returns no split 'train'"):
        split_parts({"val": {"x": X, "y": Y}}, RowsConf(), stratify=True)


def columns(found):
    return {split: list(one.own_rows(0, 1)) for split, one in found.splits.items()}


@pytest.mark.parametrize("task", ["token-classification", "language-modeling"])
def test_tasks_with_a_target_for_each_place_keep_theirs(task):
    tokens = np.arange(ROWS * 4).reshape(ROWS, 4)
    found = columns(dataset(task, x=tokens, y=tokens + 1))
    assert all(np.array_equal(part["y"], part["x"] + 1) for parts in found.values() for part in parts)
    assert sum(len(part["y"]) for parts in found.values() for part in parts) == ROWS


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "uint64", "float32", "float64"])
def test_labels_of_each_type_that_keeps_them_are_the_same_dataset(kind):
    found, usual = dataset(y=Y.astype(kind)), dataset()
    assert found.info == usual.info, "its fingerprint, too"
    assert all(part["y"].dtype == np.int64 for parts in columns(found).values() for part in parts)


def test_truth_values_are_two_classes():
    assert dataset(y=Y > 0, names=("no", "yes")).info == dataset(y=(Y > 0).astype(int), names=("no", "yes")).info


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (Y, "float32"),
        (Y.astype("int8"), "float32"),
        (Y > 0, "float32"),
        (Y.astype("float16"), "float32"),
        (Y.astype("float32"), "float32"),
        (Y / 3, "float64"),
        (Y + 2**24, "float64"),
        (Y - 2**24 - 2, "float64"),
    ],
)
def test_numbers_to_predict_lose_no_digit(y, kind):
    found = dataset("regression", y=y)
    assert found.info.target_dtype == kind
    parts = [part["y"] for one in columns(found).values() for part in one]
    assert {part.dtype for part in parts} == {np.dtype(kind)}
    assert sorted(np.concatenate(parts).tolist()) == sorted(y.astype("float64").tolist())


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("of", [("train",), ("val",), ("train", "val")], ids=" ".join)
def test_a_column_that_only_some_splits_have_is_known_or_refused(name, of):
    columns = {"x": X, "y": (Y > 0) * 1.0}
    more = {"weight": np.ones(ROWS, "float32"), "group": np.arange(ROWS) // 6, "base_margin": np.zeros(ROWS)}
    splits = {split: {**columns, **({name: more[name]} if split in of else {})} for split in ("train", "val")}
    content = Content(name="own", task="ranking" if name == "group" else "regression", memory_reason="x")
    if name == "weight" or len(of) == 2:
        assert resident_dataset(splits, content, RowsConf()).info.columns == (name,)
    else:
        without = "val" if of == ("train",) else "train"
        with pytest.raises(DatasetError, match=f"the split '{without}' has no {name}, but '{of[0]}' has one"):
            resident_dataset(splits, content, RowsConf())
