from __future__ import annotations

import sys

import numpy as np
import pytest
from pydantic import TypeAdapter

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.builder import Builder
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import ConfigError, DatasetError

CODE = """
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch

def columns(rows=20, first=0):
    a = np.arange(first, first + rows)
    return {"a": a, "b": a / 2, "y": np.where(a % 2 == 0, "even", "odd")}

def mapping(**arguments): return columns(**arguments)
def pandas(**arguments): return pd.DataFrame(columns(**arguments)).set_index(pd.RangeIndex(5, 25))
def polars(): return pl.DataFrame(columns())
def lazy(): return pl.DataFrame(columns()).lazy()
def arrow(): return pa.table(columns())
def reader(): return pa.table(columns()).to_reader()
def splits(): return {"train": columns(), "test": columns(6)}
def mixed(): return {"train": columns(), "test": arrays()}
def arrays():
    a = np.arange(20)
    return {"x": np.stack([a, a / 2], 1), "y": a % 2, "weight": np.ones(20, np.float32)}
def queries(): return {**arrays(), "group": np.arange(20) // 4}
def pairs(): return torch.utils.data.TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20) % 2)
def ragged(): return [(np.zeros(i + 1), 0) for i in range(3)]
def texts(): return pd.DataFrame({"words": [f"row {i}" for i in range(20)], "y": ["even", "odd"] * 10})
def unlabelled(): return {"x": np.array([[3, 1.5]])}
def three(): return {"train": pd.DataFrame({"words": ["new"]}), "test": pd.DataFrame({"words": ["one", "two"]})}
def twice(): return pd.concat([pandas(), pandas()[["a"]]], axis=1)
def mixture(): return pandas().assign(a=[1, "x"] * 10)
def ragged_column(): return {**columns(), "a": [[0] * (i % 3) for i in range(20)]}
def wide_column(): return {**columns(), "a": np.ones((20, 2))}
def objects(): return pl.DataFrame({**columns(), "a": pl.Series([object()] * 20, dtype=pl.Object)})
def nested(): return pandas().assign(a=pd.Categorical([(1, 2)] * 20))
def cut(): return pandas().assign(a=pd.cut(np.arange(20), 2))
def sparse(): return scipy.sparse.csr_matrix(np.eye(20))
def series(): return pandas()["a"]
def named(kind, names): return {name: globals()[kind]() for name in names}
def features(): return {"train": np.arange(20), "test": np.arange(20), "validation": np.arange(20), "y": columns()["y"]}
def number(): return 3
def broken(): return 1 / 0
def ending(): raise SystemExit(3)
value = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_rows_of_a_test.py").write_text(CODE)
    use_project_root(tmp_path)
    yield "my_rows_of_a_test"
    sys.modules.pop("my_rows_of_a_test", None)


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "reader", "pairs", "columns", "arrays"])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train", "validation"], "'validation', and there is no split 'validation'.\nCall it 'val'"),
        (["train", "holdout"], "there is no split 'holdout'.\navailable: train, val, test"),
        (["test", "val"], "returns no split 'train'"),
        ([0, 1], "there is no split '0'.\navailable: train, val, test"),
    ],
)
def test_splits_of_other_names_are_named(load, module, kind, names, message):
    with pytest.raises(DatasetError, match=message):
        load("python", function=f"{module}:named", arguments={"kind": kind, "names": names})


def test_columns_may_be_called_as_splits_are(load, module):
    found = load("python", function=f"{module}:features", split={"test": 0})
    assert found.info.feature_names == ("train", "test", "validation")


@pytest.mark.parametrize("function", ["mapping", "pandas", "polars", "lazy", "arrow", "reader"])
def test_tables_of_every_kind(load, module, function):
    dataset = load("python", function=f"{module}:{function}", split={"test": 0})
    assert (dataset.info.feature_names, dataset.info.class_names) == (("a", "b"), ("even", "odd"))
    columns = dataset.splits["train"].columns
    np.testing.assert_array_equal(columns["x"], np.stack([np.arange(20), np.arange(20) / 2], 1))
    np.testing.assert_array_equal(columns["y"], np.arange(20) % 2)


@pytest.mark.parametrize("function", ["mixture", "ragged_column", "wide_column", "objects"])
def test_a_column_that_can_not_be_read_may_be_dropped(load, module, function):
    with pytest.raises(DatasetError, match="'a'"):
        load("python", function=f"{module}:{function}")
    dataset = load("python", function=f"{module}:{function}", drop=["a"], split={"test": 0})
    assert dataset.info.feature_names == ("b",)
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"][:, 0], np.arange(20) / 2)


def test_arguments_and_splits(load, module):
    assert load("python", function=f"{module}:mapping", arguments={"rows": 8}, split={"test": 0}).info.num_rows == {
        "train": 8
    }
    assert load("python", function=f"{module}.splits").info.num_rows == {"train": 20, "test": 6}


def test_arrays_and_torch_datasets(load, module):
    dataset = load("python", function=f"{module}:arrays", split={"test": 0})
    assert (dataset.info.columns, dataset.info.num_classes) == (("weight",), 2)
    pairs = load("python", function=f"{module}:pairs", split={"test": 0}).splits["train"].columns
    np.testing.assert_array_equal(pairs["x"], np.arange(40).reshape(20, 2))
    np.testing.assert_array_equal(pairs["y"], np.arange(20) % 2)
    assert load("python", function=f"{module}:queries").info.task == "ranking"


def test_intervals_are_categories(load, module):
    assert load("python", function=f"{module}:cut").info.categories == {"a": ("(-0.019, 9.5]", "(9.5, 19.0]")}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "has no 'nothing'"),
        ("value", "is not a function"),
        ("number", "returns a int"),
        ("ending", r"ended the process: exit\(3\)\s+--> .*my_rows_of_a_test.py:\d+"),
        ("broken", r"failed: ZeroDivisionError: division by zero\s+--> .*my_rows_of_a_test.py:\d+"),
        ("ragged", "rows differ in shape"),
        ("twice", "there are 2 columns 'a'"),
        ("mixture", "column 'a' contains values of different types: int, str"),
        ("nested", "'a' is nested"),
        ("sparse", "returns a sparse matrix"),
        ("series", "returns a Series"),
        ("mixed", "some splits are tables and others are arrays"),
    ],
)
def test_mistakes_are_explained(load, module, function, message):
    with pytest.raises(ConfigError, match=message):
        load("python", function=f"{module}:{function}")


def test_a_wrong_label_is_explained(load, module):
    with pytest.raises(DatasetError, match="without targets 'z'"):
        load("python", function=f"{module}:arrays", label="z")
    with pytest.raises(DatasetError, match="'z', which is not a column"):
        load("python", function=f"{module}:arrow", label="z")


def test_only_allowed_modules_are_imported(load, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stranger_of_a_test.py").write_text(CODE)
    with pytest.raises(ConfigError, match="is not allowed"):
        load("python", function="stranger_of_a_test:arrays")
    assert "stranger_of_a_test" not in sys.modules
    conf = TypeAdapter(confs()["python"]).validate_python({"function": "stranger_of_a_test:arrays"})
    allowed = load_source("python", Builder(("stranger_of_a_test.*",)))
    assert sum(allowed.load(conf).info.num_rows.values()) == 20
    sys.modules.pop("stranger_of_a_test")


def test_a_column_of_texts_has_classes_or_is_a_language(load, module):
    dataset = load("python", function=f"{module}:texts", text="words", split={"test": 0})
    assert (dataset.info.name, dataset.info.dtype, dataset.info.class_names) == ("python", "object", ("even", "odd"))
    assert dataset.splits["train"].columns["x"][3] == "row 3"
    language = load("python", function=f"{module}:texts", text="words", task="language-modeling", split={"test": 0})
    assert language.info.task == "language-modeling"
    with pytest.raises(DatasetError, match="'sentences'"):
        load("python", function=f"{module}:texts", text="sentences")


def test_new_rows_of_tables_arrays_and_texts(load, open_rows, module):
    names = {name: f"{module}:{name}" for name in ("pandas", "arrays", "unlabelled", "texts", "three")}
    dataset = load("python", function=names["pandas"], split={"test": 0})
    found = open_rows("python", dataset, with_labels=True, function=names["pandas"], arguments={"rows": 20, "first": 7})
    assert (found.x[0].tolist(), found.y[:2].tolist()) == ([7, 3.5], [1, 0])
    dataset = load("python", function=names["arrays"], split={"test": 0})
    assert open_rows("python", dataset, True, function=names["arrays"]).y.tolist() == [0, 1] * 10
    found = open_rows("python", dataset, function=names["unlabelled"])
    assert (found.x.tolist(), found.y) == ([[3, 1.5]], None)
    with pytest.raises(DatasetError, match="unlabelled returns arrays without targets 'y'"):
        load("python", function=names["unlabelled"])
    dataset = load("python", function=names["texts"], text="words", split={"test": 0})
    found = open_rows("python", dataset, function=names["three"], text="words")
    assert found.x.tolist() == ["new", "one", "two"]
    with pytest.raises(DatasetError, match="trained on another kind of rows, and this source gives tables"):
        open_rows("python", dataset, function=names["pandas"])
