"""What csv and parquet share, on the same tables in both formats, in memory and streamed."""

from __future__ import annotations

import datetime
import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv, parquet
from sklearn.datasets import load_diabetes, load_iris

from rtrain.datasets.base import EpochPlan
from rtrain.errors import DatasetError


@pytest.fixture(params=["csv", "parquet"])
def source(request):
    return request.param


@pytest.fixture(params=["resident", "stream"])
def memory(request):
    return request.param


def write(source, path, columns):
    table = pa.table(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(f".{source}")
    if source == "csv":
        csv.write_csv(table, file)
    else:
        parquet.write_table(table, file, row_group_size=40)
    return str(file)


def iris():
    bunch = load_iris()
    names = [name.replace(" (cm)", "").replace(" ", "_") for name in bunch.feature_names]
    return {**dict(zip(names, bunch.data.T, strict=True)), "kind": bunch.target_names[bunch.target]}


def rows_of(split):
    batches = list(split.batches(EpochPlan(rank=0, world_size=1, global_batch_size=16, seed=0)))
    return np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches])


def test_text_labels_become_classes(load, tmp_path, source, memory):
    dataset = load(source, path=write(source, tmp_path / "iris", iris()), label="kind", memory=memory)
    info = dataset.info
    assert info.task == "classification"
    assert info.class_names == ("setosa", "versicolor", "virginica")
    assert info.feature_names == ("sepal_length", "sepal_width", "petal_length", "petal_width")
    assert info.input_shape == (4,)
    assert sum(info.num_rows.values()) == 150
    assert info.memory == memory
    x, y = rows_of(dataset.splits["train"])
    assert (x.dtype, y.dtype, len(x)) == (np.float32, np.int64, info.num_rows["train"])
    assert x[y == 0][:, 2].max() < x[y == 2][:, 2].min()


def test_numbers_become_targets(load, tmp_path, source, memory):
    bunch = load_diabetes()
    columns = {**dict(zip(bunch.feature_names, bunch.data.T, strict=True)), "target": bunch.target + 0.5}
    dataset = load(
        source, path=write(source, tmp_path / "d", columns), label="target", features=["bmi", "bp"], memory=memory
    )
    assert (dataset.info.task, dataset.info.num_classes) == ("regression", None)
    assert dataset.info.feature_names == ("bmi", "bp")
    _, y = rows_of(dataset.splits["train"])
    assert y.dtype == np.float32
    assert set(y.tolist()) <= set((bunch.target + 0.5).astype(np.float32).tolist())


def test_memory_and_stream_agree_on_rows_and_statistics(load, tmp_path, source):
    path = write(source, tmp_path / "iris", iris())
    found = [
        load(source, path=path, label="kind", memory=memory, split={"test": 0}) for memory in ("resident", "stream")
    ]
    rows = [sorted(map(tuple, np.column_stack(rows_of(one.splits["train"])).tolist())) for one in found]
    assert rows[0] == rows[1]
    np.testing.assert_allclose(found[0].info.mean, found[1].info.mean)
    np.testing.assert_allclose(found[0].info.std, found[1].info.std)


@pytest.mark.parametrize(
    ("values", "task", "expected", "names"),
    [
        ([0, 1, 2, 3] * 10, "auto", "classification", ("0", "1", "2", "3")),
        (list(range(200)), "auto", "regression", ()),
        ([10, -5] * 10, "auto", "classification", ("-5", "10")),
        ([True, False] * 10, "auto", "classification", ("false", "true")),
        ([0.5, 1.5] * 10, "auto", "regression", ()),
        ([0.5, 1.5] * 10, "classification", "classification", ("0.5", "1.5")),
        ([0, 1] * 10, "regression", "regression", ()),
    ],
)
def test_the_task_follows_the_label(load, tmp_path, source, memory, values, task, expected, names):
    path = write(source, tmp_path / "t", {"a": np.arange(len(values)), "y": values})
    info = load(source, path=path, label="y", task=task, memory=memory).info
    assert (info.task, info.class_names) == (expected, names)


def test_booleans_and_whole_numbers_are_features(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", {"a": [True, False] * 10, "b": np.arange(20), "y": [0, 1] * 10})
    x, _ = rows_of(load(source, path=path, label="y", memory=memory, split={"test": 0}).splits["train"])
    assert sorted(x[:, 0].tolist()) == [0.0] * 10 + [1.0] * 10
    assert sorted(x[:, 1].tolist()) == list(range(20))


def test_files_make_splits(load, tmp_path, source, memory):
    for name, rows in (("train/a", slice(0, 150, 2)), ("train/b", slice(1, 150, 4)), ("test/c", slice(3, 150, 4))):
        write(source, tmp_path / name, {key: values[rows] for key, values in iris().items()})
    num_rows = load(source, path=str(tmp_path), label="kind", memory=memory).info.num_rows
    assert num_rows == {"train": 113, "test": 37}


def test_streamed_shares_are_about_right_disjoint_and_stable(load, tmp_path, source):
    path = write(source, tmp_path / "t", {"a": np.arange(5000), "y": np.arange(5000) % 3})
    keys = {"path": path, "label": "y", "memory": "stream", "split": {"val": 0.1, "test": 0.2}}
    dataset, again = load(source, **keys), load(source, **keys)
    rows = {name: rows_of(split)[0][:, 0].tolist() for name, split in dataset.splits.items()}
    assert sorted(itertools.chain(*rows.values())) == list(range(5000))
    assert {name: len(found) for name, found in rows.items()} == dict(dataset.info.num_rows)
    assert abs(len(rows["test"]) - 1000) < 100
    assert abs(len(rows["val"]) - 500) < 80
    assert sorted(rows_of(again.splits["val"])[0][:, 0].tolist()) == sorted(rows["val"])


def test_limit(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", {"a": np.arange(500), "y": np.arange(500) % 2})
    info = load(source, path=path, label="y", memory=memory, limit=100).info
    assert sum(info.num_rows.values()) == 100


def test_missing_values_stop_unless_asked_otherwise(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", {"a": [1.0, None, 3.0, 5.0], "b": [1, 2, 3, 4], "y": [0, 1, 0, 1]})
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=r"missing in 'a' 1 times \(first in row 2\)"):
        load(source, **keys, on_missing="error")
    kept, _ = rows_of(load(source, **keys, on_missing="keep").splits["train"])
    assert np.isnan(kept[:, 0]).sum() == 1
    filled, _ = rows_of(load(source, **keys, on_missing="mean").splits["train"])
    assert sorted(filled[:, 0].tolist()) == [1, 3, 3, 5]


@pytest.mark.parametrize("is_missing", [True, False])
def test_by_default_later_rows_may_lack_values_where_some_of_training_did(load, tmp_path, source, memory, is_missing):
    path = write(source, tmp_path / "t", {"a": [1.0, None if is_missing else 2.0, 3.0, 5.0], "y": [0, 1, 0, 1]})
    dataset = load(source, path=path, label="y", memory=memory, split={"test": 0})
    assert dataset.info.missing == (("a",) if is_missing else ())
    assert dataset.encoding["on_missing"] == ("keep" if is_missing else "error")
    assert np.isnan(rows_of(dataset.splits["train"])[0]).any() == is_missing


def test_all_columns_that_can_be_no_features_are_named_at_once(load, tmp_path, source, memory):
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    path = write(source, tmp_path / "t", {"sold": days, "a": [1, 2, 3], "built": days, "y": [0, 1, 0]})
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError) as caught:
        load(source, **keys)
    assert "'sold'" in caught.value.message
    assert "'built'" in caught.value.message
    drop, dtypes = re.findall(r"'dataset\.(?:drop|dtypes)=(.*?)'", caught.value.hint)
    assert load(source, **keys, drop=yaml.safe_load(drop)).info.feature_names == ("a",)
    assert load(source, **keys, dtypes=yaml.safe_load(dtypes)).info.feature_names == ("sold", "a", "built")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"label": "knd"}, "'knd', which is not a column"),
        ({"label": "kind", "features": ["petal_lenght"]}, "did you mean: petal_length"),
        ({"label": "kind", "features": ["kind"]}, "contains the label 'kind'"),
        ({"label": "kind", "features": ["petal_length", "petal_length"]}, "names 'petal_length' 2 times"),
        (
            {"label": "petal_length", "categorical": []},
            r"row 1 contains 'setosa'[\s\S]*categorical=\[kind\]'[\s\S]*drop=\[kind\]'",
        ),
        ({"label": "kind", "task": "regression"}, "regression needs a number"),
        ({"label": "kind", "split": {"val": 0.6, "test": 0.4}}, "leaves nothing for train"),
        ({"label": "kind", "normalize": {"mean": [1], "std": [1]}}, "has 1 numbers, but the data has 4"),
    ],
)
def test_wrong_columns_and_keys_are_errors(load, tmp_path, source, memory, keys, message):
    with pytest.raises(DatasetError, match=message):
        load(source, path=write(source, tmp_path / "iris", iris()), memory=memory, **keys)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 2, 3], "y": [1.5, None, 2.5]}, "row 2 has no label"),
        ({"a": [1, 2, 3], "y": ["x", "y", None]}, "row 3 has no label"),
        (
            {"a": range(20), "y": ["7.5", "many", *map(str, range(18))]},
            "row 2 has y='many', but almost all other labels",
        ),
        ({"a": [1, 2, 3], "y": ["x", "x", "x"]}, "x in every row, so there is nothing to learn"),
        ({"a": [1.0, 2.0, np.inf], "y": [0, 1, 0]}, "'a' is infinite, or too large for float32, in row 3"),
        ({"a": [1.0, 1e300, 2.0], "y": [0, 1, 0]}, "in row 2"),
        ({"a": [None, None, None], "y": [0, 1, 0]}, "missing in 'a' 3 times"),
        ({"y": [0, 1, 0]}, "no column except the label"),
    ],
)
def test_wrong_values_are_named_with_their_row(load, tmp_path, source, memory, columns, message):
    keys = {"path": write(source, tmp_path / "t", columns), "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=message):
        load(source, **keys, on_missing="error")


def test_a_table_without_rows_is_an_error(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", {"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())})
    with pytest.raises(DatasetError, match="no rows for the split 'train'"):
        load(source, path=path, label="y", memory=memory)


def test_a_class_that_train_lacks_is_an_error(load, tmp_path, source, memory):
    train = write(source, tmp_path / "train", {"a": [1, 2, 3], "y": ["cat", "dog", "cat"]})
    test = write(source, tmp_path / "test", {"a": [1, 2], "y": ["dog", "emu"]})
    with pytest.raises(DatasetError, match="row 2 has the label y='emu'"):
        load(source, path={"train": train, "test": test}, label="y", memory=memory)


def test_a_class_may_have_a_name_among_numbers_if_asked_for(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", {"a": range(20), "y": ["many", *map(str, range(19))]})
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}}
    assert load(source, task="classification", **keys).info.num_classes == 20


@pytest.mark.parametrize(
    "values", [["3", "10"] * 5, ["007", "1"] * 5, ["1.5", "-2"] * 5, [str(one) for one in range(10)]]
)
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_text_that_holds_numbers_only_is_a_class_or_a_number_as_the_config_says(load, tmp_path, memory, values):
    path = write("parquet", tmp_path / "t", {"a": range(10), "y": values})
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=r"'y' is text, but each text is a number") as raised:
        load("parquet", **keys)
    assert "dataset.task=classification" in raised.value.hint
    assert "dataset.dtypes={y: float64}" in raised.value.hint
    with pytest.raises(DatasetError, match="regression needs a number") as raised:
        load("parquet", task="regression", **keys)
    assert "dataset.dtypes={y: float64}" in raised.value.hint
    assert load("parquet", task="classification", **keys).info.class_names == tuple(sorted(set(values)))
    _, targets = rows_of(load("parquet", dtypes={"y": "float64"}, **keys).splits["train"])
    assert sorted(targets) == sorted(map(float, values))


def test_a_dictionary_of_numbers_as_text_says_that_it_holds_classes(load, tmp_path):
    kind = pa.array(["3", "10"] * 5).dictionary_encode()
    path = write("parquet", tmp_path / "t", {"a": range(10), "y": kind})
    assert load("parquet", path=path, label="y", split={"test": 0}, memory="resident").info.class_names == ("10", "3")


def test_missing_values_of_any_split_are_known(load, tmp_path, source, memory):
    train = write(source, tmp_path / "train", {"a": [1, 2, 3], "b": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    test = write(source, tmp_path / "test", {"a": [1, 2], "b": [None, 2.0], "y": [0, 1]})
    path = {"train": train, "test": test}
    assert load(source, path=path, label="y", memory=memory, on_missing="keep").info.missing == ("b",)


def test_a_file_that_lacks_a_column_is_named(load, tmp_path, source, memory):
    write(source, tmp_path / "1", {"a": [1, 2], "b": [1, 2], "y": [0, 1]})
    write(source, tmp_path / "2", {"a": [1, 2], "y": [0, 1]})
    with pytest.raises(DatasetError, match=rf"2\.{source}: there is no column 'b', which .*1\.{source} has"):
        load(source, path=str(tmp_path), label="y", memory=memory)


def test_auto_streams_what_is_too_large(load, tmp_path, source, monkeypatch):
    monkeypatch.setattr("rtrain.datasets.memory.free_bytes", lambda: 1000)
    info = load(source, path=write(source, tmp_path / "iris", iris()), label="kind").info
    assert info.memory == "stream"
    assert "more than 25% of 1.0 kB" in info.memory_reason


def test_the_fingerprint_follows_the_content(load, tmp_path, source, memory):
    keys = {"path": write(source, tmp_path / "t", iris()), "label": "kind", "memory": memory}
    first, again = (load(source, **keys).info.fingerprint for _ in range(2))
    changed = iris()
    changed["sepal_length"][0] = 12.25
    write(source, tmp_path / "t", {key: values[:-1] for key, values in changed.items()})
    assert first == again != load(source, **keys).info.fingerprint
