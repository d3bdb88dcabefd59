from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rtrain.errors import DatasetError

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def path(tmp_path):
    """A table whose version 0 has 20 rows and version 1 has 30."""
    for first, last in ((0, 20), (20, 30)):
        a = np.arange(first, last)
        table = pa.table({"a": a, "b": a / 2, "y": np.where(a % 2, "odd", "even")})
        deltalake.write_deltalake(str(tmp_path / "t"), table, mode="append")
    return str(tmp_path / "t")


def test_the_newest_version_or_an_older_one(load, path):
    info = load("delta", path=path, label="y").info
    assert (info.class_names, info.feature_names, sum(info.num_rows.values())) == (("even", "odd"), ("a", "b"), 30)
    assert sum(load("delta", path=path, label="y", features=["b"], version=0).info.num_rows.values()) == 20


def test_new_rows_are_those_of_another_version_in_their_order(load, open_rows, path):
    keys = {"path": path, "label": "y"}
    dataset = load("delta", **keys, features=["b"], version=0, split={"test": 0})
    found = open_rows("delta", dataset, with_labels=True, **keys, features=["b"])
    assert sorted(found.x[:, 0].tolist()) == [row / 2 for row in range(30)]
    assert found.kept["a"] == [int(2 * b) for b in found.x[:, 0]]
    assert found.y.tolist() == [a % 2 for a in found.kept["a"]]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"version": 7}, "version"),
        ({"label": "z"}, "'z', which is not a column"),
        ({"features": ["c"]}, "'c', which is not a column"),
        ({"path": "nothing-here"}, "does not exist"),
    ],
)
def test_mistakes_are_explained(load, path, keys, message):
    with pytest.raises(DatasetError, match=message):
        load("delta", **{"path": path, "label": "y", **keys})


def test_a_folder_without_a_log_is_no_table(load, tmp_path):
    with pytest.raises(DatasetError, match="is not a Delta table"):
        load("delta", path=str(tmp_path), label="y")


def test_options_reach_the_object_store(load, path, monkeypatch):
    given, table = [], deltalake.DeltaTable

    def note(*args, storage_options, **keys):
        given.append(storage_options)
        return table(*args, **keys)

    monkeypatch.setattr(deltalake, "DeltaTable", note)
    load("delta", path=path, label="y", storage_options={"region": "mars"})
    assert given[0]["region"] == "mars"
