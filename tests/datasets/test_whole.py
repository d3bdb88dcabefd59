"""Data sets with their own columns: what a train loop reads, from each source that has some."""

import json
import sqlite3
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.forgetting import project_forgotten
from rtrain.datasets.registry import load_source, whole_confs
from rtrain.datasets.several import load_part, load_several
from rtrain.errors import DatasetError

ROWS = {"size": [1, 2, 3], "name": ["a", "b", None], "score": [0.5, 1.5, 2.5]}
FUNCTIONS = """
import numpy as np
import pandas as pd


def frame():
    return pd.DataFrame({"size": [1, 2, 3], "name": ["a", "b", None], "score": [0.5, 1.5, 2.5]})


def images():
    return {"image": np.zeros((3, 2, 2)), "size": np.arange(3)}


def twice():
    return pd.concat([frame(), frame()[["size"]]], axis=1)


def mixture():
    return {"size": np.array([1, "x", 2], object)}


def splits():
    return {"train": frame(), "test": frame()}


def ragged():
    return {"image": np.zeros((3, 2, 2)), "size": np.arange(4)}
"""


def make_csv(folder):
    (folder / "rows.csv").write_text("size,name,score\n1,a,0.5\n2,b,1.5\n3,,2.5\n")
    return {"path": f"{folder}/rows.csv"}


def make_json(folder):
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {"path": f"{folder}/rows.jsonl"}


def make_parquet(folder):
    pq.write_table(pa.table(ROWS), folder / "rows.parquet", row_group_size=2)
    return {"path": f"{folder}/rows.parquet"}


def make_sql(folder):
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE things (size INTEGER, name TEXT, score REAL)")
        connection.executemany("INSERT INTO things VALUES (?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    return {"url": f"sqlite:///{folder}/rows.db", "query": "things"}


def make_delta(folder):
    from deltalake import write_deltalake

    write_deltalake(folder / "table", pa.table(ROWS))
    return {"path": f"{folder}/table"}


def make_huggingface(folder):
    import datasets

    datasets.Dataset.from_dict(ROWS).save_to_disk(folder / "saved")
    return {"path": f"{folder}/saved"}


def make_python(folder):
    (folder / "whole_functions.py").write_text(FUNCTIONS)
    return {"function": "whole_functions:frame"}


SOURCES = {
    "csv": make_csv,
    "json": make_json,
    "parquet": make_parquet,
    "sql": make_sql,
    "delta": make_delta,
    "huggingface": make_huggingface,
    "python": make_python,
}


@pytest.fixture
def project(tmp_path):
    """A user's project, whose functions may be named."""
    with project_forgotten():
        use_project_root(tmp_path)
        yield tmp_path


def loaded(name, **keys):
    return load_part(load_source(name, Builder(("whole_functions",))), whole_confs()[name](**keys))


def test_every_source_with_columns_of_its_own_is_tried():
    assert set(SOURCES) == {name for name in whole_confs() if load_source(name).WholeConf is not None}


@pytest.mark.parametrize("name", SOURCES)
def test_all_rows_have_the_columns_of_the_data(project, name):
    dataset = loaded(name, **SOURCES[name](project))
    assert dataset.info.num_rows == {"train": 3}
    assert list(dataset.info.own_columns) == list(ROWS)
    split = dataset.splits["train"]
    assert list(split.rows()) == [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    columns = next(split.own_rows(0, 1))
    assert columns["size"].tolist() == [1, 2, 3]
    assert columns["name"].tolist() == ["a", "b", None]


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_files_that_are_streamed_give_the_same_rows(tmp_path, name):
    keys = SOURCES[name](tmp_path)
    held, streamed = (loaded(name, memory=memory, **keys) for memory in ("resident", "stream"))
    assert (held.info.memory, streamed.info.memory) == ("resident", "stream")
    assert streamed.info.num_rows == held.info.num_rows
    assert streamed.info.own_columns == held.info.own_columns
    assert list(streamed.splits["train"].rows()) == list(held.splits["train"].rows())


def test_columns_can_be_chosen_and_taken_as_another_type(tmp_path):
    dataset = loaded("csv", columns=["score", "size"], dtypes={"size": "string"}, **make_csv(tmp_path))
    assert dataset.info.own_columns == {"score": "double", "size": "string"}
    with pytest.raises(DatasetError, match=r"dataset\.columns names 'sise'"):
        loaded("csv", columns=["sise"], **make_csv(tmp_path))


@pytest.mark.parametrize("name", SOURCES)
def test_a_type_for_a_column_that_is_none_is_refused(project, name):
    with pytest.raises(DatasetError, match=r"dataset\.dtypes names 'sise', which is not a column") as caught:
        loaded(name, dtypes={"sise": "string"}, **SOURCES[name](project))
    assert "size" in caught.value.hint


def test_a_type_for_a_column_that_is_not_read_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"dataset\.dtypes names 'size'"):
        loaded("csv", columns=["score"], dtypes={"size": "string"}, **make_csv(tmp_path))


def test_the_fingerprint_follows_the_content(tmp_path):
    keys = make_csv(tmp_path)
    first = loaded("csv", **keys).info.fingerprint
    assert loaded("csv", **keys).info.fingerprint == first
    (tmp_path / "rows.csv").write_text("size,name,score\n1,a,0.5\n2,b,1.5\n3,,2.25\n")
    assert loaded("csv", **keys).info.fingerprint != first


def test_arrays_of_a_function_keep_their_names_and_shapes(project):
    make_python(project)
    dataset = loaded("python", function="whole_functions:images")
    assert dataset.info.own_columns == {"image": "float64 [2, 2]", "size": "int64 []"}
    assert next(dataset.splits["train"].own_rows(0, 1))["image"].shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("twice", "there are 2 columns 'size'"),
        ("mixture", "column 'size' contains values of different types"),
        ("splits", "returns rows by split"),
        ("ragged", "the columns differ in length"),
    ],
)
def test_columns_of_a_function_that_can_not_be_read_are_named(project, function, message):
    make_python(project)
    with pytest.raises(DatasetError, match=message):
        loaded("python", function=f"whole_functions:{function}")


def test_a_split_of_several_is_named(tmp_path):
    import datasets

    parts = {"train": datasets.Dataset.from_dict(ROWS), "dev": datasets.Dataset.from_dict({"size": [7]})}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    path = str(tmp_path / "saved")
    assert loaded("huggingface", path=path, split="dev").info.num_rows == {"train": 1}
    with pytest.raises(DatasetError, match="several splits"):
        loaded("huggingface", path=path)
    with pytest.raises(DatasetError, match="no split 'test'"):
        loaded("huggingface", path=path, split="test")


def test_data_without_columns_of_its_own_is_read_whole():
    dataset = loaded("digits")
    assert dataset.info.num_rows == {"train": 1797}
    conf = whole_confs()["digits"]()
    conf.split.val = 0.1
    with pytest.raises(DatasetError, match=r"dataset\.split has no effect"):
        load_part(load_source("digits"), conf)


def test_several_are_one_with_a_split_for_each(tmp_path):
    rows, digits = partial(loaded, "csv", **make_csv(tmp_path)), partial(loaded, "digits")
    both = load_several({"train": digits, "anything": rows})
    assert both.info.num_rows == {"train": 1797, "anything": 3}
    assert both.info.parts["anything"]["source"] == "csv"
    assert both.info.parts["anything"]["columns"] == {"size": "int64", "name": "string", "score": "double"}
    swapped = load_several({"anything": digits, "train": rows})
    assert swapped.info.fingerprint != both.info.fingerprint


def test_an_error_names_the_key_of_the_data_set():
    with pytest.raises(DatasetError, match=r"datasets\.some\.path: nowhere\.csv does not exist"):
        load_several({"some": partial(loaded, "csv", path="nowhere.csv")})


def test_missing_numbers_are_what_numpy_has_for_them(tmp_path):
    (tmp_path / "rows.csv").write_text("size,score\n1,0.5\n,\n")
    columns = next(loaded("csv", path=f"{tmp_path}/rows.csv").splits["train"].own_rows(0, 1))
    np.testing.assert_array_equal(columns["size"], [1, np.nan])
    np.testing.assert_array_equal(columns["score"], [0.5, np.nan])
