"""Columns of tables with a use of their own: categories, weights, groups, ids; and the same columns in new files."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from pydantic import TypeAdapter

from rtrain.datasets.base import EpochPlan
from rtrain.datasets.conf import ColumnsConf, TableSplitConf
from rtrain.datasets.registry import confs, load_source
from rtrain.datasets.tables.arrow import load_arrow
from rtrain.datasets.tables.column_roles import Roles
from rtrain.datasets.tables.predict_rows import open_arrow_rows
from rtrain.errors import ConfigError, DatasetError
from rtrain.trainers.loops.auto import check_quantities, check_task

NUM_ROWS = 120


@pytest.fixture(params=["csv", "parquet"])
def source(request):
    return request.param


@pytest.fixture(params=["resident", "stream"])
def memory(request):
    return request.param


def sales():
    row = np.arange(NUM_ROWS)
    return {
        "id": row + 1000,
        "size": row / 7,
        "colour": np.array(["red", "green", "blue"])[row % 3],
        "shop": row % 4,
        "note": [f"note {one}" for one in row],
        "w": 1 + row % 2,
        "start": row * 0.5,
        "y": row % 2,
    }


KEYS = {"label": "y", "ids": ["id"], "drop": ["no*"], "weight": "w", "base_margin": ["start"]}


def write(source, path, columns):
    file = path.with_suffix(f".{source}")
    table = pa.table(columns)
    if source == "csv":
        csv.write_csv(table, file)
    else:
        parquet.write_table(table, file, row_group_size=50)
    return str(file)


def own_rows(split):
    parts = list(split.own_rows(0, 1))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def predicted(source, encoding, with_labels=False, **keys):
    conf = TypeAdapter(confs()[source]).validate_python(keys)
    reader = load_source(source).open_rows(conf, json.loads(json.dumps(encoding)))
    return [chunk for piece in reader.pieces for chunk in reader.read(piece, with_labels)]


def test_each_column_finds_its_use_and_stays_with_its_row(load, tmp_path, source, memory):
    dataset = load(source, path=write(source, tmp_path / "t", sales()), memory=memory, split={"val": 0.3}, **KEYS)
    info = dataset.info
    assert info.feature_names == ("size", "colour", "shop")
    assert dict(info.categories) == {"colour": ("blue", "green", "red")}
    assert info.columns == ("weight", "base_margin")
    assert (info.mean[1], info.std[1]) == (0, 1)
    for split in dataset.splits.values():
        rows = own_rows(split)
        row = np.rint(rows["x"][:, 0] * 7).astype(int)
        np.testing.assert_array_equal(rows["x"][:, 1], np.array([2, 1, 0])[row % 3])
        np.testing.assert_array_equal(rows["weight"], 1 + row % 2)
        np.testing.assert_allclose(rows["base_margin"], row * 0.5)
        assert len(row) == split.num_rows
    batch = next(iter(dataset.splits["train"].batches(EpochPlan(rank=0, world_size=1, global_batch_size=8, seed=0))))
    row = np.rint(batch.x[:, 0] * 7).astype(int)
    np.testing.assert_array_equal(batch.weight, 1 + row % 2)


def test_whole_numbers_are_categories_when_asked(load, tmp_path, source, memory):
    keys = {**KEYS, "categorical": ["shop"], "drop": ["note", "colour"]}
    info = load(source, path=write(source, tmp_path / "t", sales()), memory=memory, **keys).info
    assert dict(info.categories) == {"shop": ("0", "1", "2", "3")}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["A", "1", "B"], ("1", "A", "B")),
        (["1", "A", "B"], ("1", "A", "B")),
        ([None, "2", "x"], ("2", "x")),
        (pa.array(["01234", "12345", "1234"]).dictionary_encode(), ("01234", "1234", "12345")),
    ],
)
def test_a_column_of_text_is_a_category_whatever_comes_first(load, tmp_path, memory, values, names):
    path = write("parquet", tmp_path / "t", {"a": values, "y": [0, 1, 0]})
    info = load("parquet", path=path, label="y", memory=memory, split={"test": 0}).info
    assert dict(info.categories) == {"a": names}


def test_dictionaries_of_whole_numbers_are_categories_and_of_fractions_numbers():
    columns = {"a": pa.array([7, 8, 7]).dictionary_encode(), "b": pa.array([0.5, 1, 2]).dictionary_encode()}
    conf = ColumnsConf(label="y", split=TableSplitConf(test=0))
    info = load_arrow("frame", {"train": pa.table({**columns, "y": [0, 1, 0]})}, conf, "frame").info
    assert dict(info.categories) == {"a": ("7", "8")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "2", "nan"], "row 1 contains the text '1'"),
        ([*map(str, range(20)), "?"], r"row 21 contains '\?'"),
    ],
)
def test_numbers_written_as_text_are_an_error_that_shows_the_way_out(load, tmp_path, memory, values, message):
    columns = {"a": values, "b": ["p", "q", "r"] * (len(values) // 3), "y": [0, 1, 2] * (len(values) // 3)}
    keys = {"path": write("parquet", tmp_path / "t", columns), "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=rf"{message}[\s\S]*categorical=\[a,b\]'[\s\S]*drop=\[a\]'"):
        load("parquet", **keys)
    assert list(load("parquet", **keys, categorical=["a", "b"]).info.categories) == ["a", "b"]


def test_names_come_from_the_train_split_only(load, tmp_path, source, memory):
    train = write(source, tmp_path / "train", {"a": ["x", "y"] * 10, "b": [1, 2] * 10, "y": [0, 1] * 10})
    test = write(source, tmp_path / "test", {"a": ["y", "z", None], "b": [1, 1, 1], "y": [0, 1, 0]})
    dataset = load(source, path={"train": train, "test": test}, label="y", memory=memory)
    assert dict(dataset.info.categories) == {"a": ("x", "y")}
    np.testing.assert_array_equal(own_rows(dataset.splits["test"])["x"][:, 0], [1, np.nan, np.nan])


def test_a_name_that_only_a_held_back_row_has_is_unknown(load, tmp_path, source, memory):
    columns = {"a": [f"name{row}" for row in range(60)], "b": np.arange(60), "y": [0, 1] * 30}
    dataset = load(source, path=write(source, tmp_path / "t", columns), label="y", memory=memory, split={"test": 0.3})
    names = dataset.info.categories["a"]
    train, test = (own_rows(dataset.splits[split])["x"] for split in ("train", "test"))
    assert [names[int(code)] for code in train[:, 0]] == [f"name{int(row)}" for row in train[:, 1]]
    assert len(names) == len(train)
    assert np.isnan(test[:, 0]).all()


def test_groups_stay_whole_and_together(load, tmp_path, source):
    query = np.random.default_rng(0).integers(0, 20, NUM_ROWS)
    columns = {"a": np.arange(NUM_ROWS), "q": [f"q{one}" for one in query], "grade": query % 3}
    path = write(source, tmp_path / "t", columns)
    dataset = load(source, path=path, label="grade", group="q", task="ranking", split={"test": 0.25})
    assert (dataset.info.task, dataset.info.columns, dataset.info.num_classes) == ("ranking", ("group",), None)
    seen = []
    for split in dataset.splits.values():
        for rank in range(2):
            rows = next(iter(split.own_rows(rank, 2)))
            assert len({query[int(row)] for row in rows["x"][:, 0]}) == len(set(rows["group"].tolist()))
            assert (np.diff(rows["group"]) != 0).sum() + 1 == len(set(rows["group"].tolist()))
            seen.append(set(rows["group"].tolist()))
    assert len(set.union(*seen)) == sum(map(len, seen)) == len(set(query))


def test_float64_keeps_doubles(load, tmp_path, source, memory):
    values = 1 + np.arange(40) * 1e-12
    path = write(source, tmp_path / "t", {"a": values, "y": [0, 1] * 20})
    dataset = load(source, path=path, label="y", dtype="float64", memory=memory, split={"test": 0})
    assert dataset.info.dtype == "float64"
    np.testing.assert_array_equal(own_rows(dataset.splits["train"])["x"][:, 0], values)


def test_new_files_are_read_as_in_training_with_ids_and_without_labels(load, tmp_path, source, memory):
    columns = sales()
    dataset = load(source, path=write(source, tmp_path / "t", columns), memory=memory, split={"test": 0}, **KEYS)
    new = {name: list(columns[name])[::-1] for name in ("shop", "colour", "id", "size", "start")}
    new["colour"][0] = "pink"
    chunks = predicted(source, dataset.encoding, path=write(source, tmp_path / "new", new), **KEYS)
    x = np.concatenate([chunk.x for chunk in chunks])
    expected = own_rows(dataset.splits["train"])["x"][::-1].copy()
    expected[0, 1] = np.nan
    np.testing.assert_array_equal(x, expected)
    assert all(chunk.y is None for chunk in chunks)
    margins = np.concatenate([chunk.base_margin for chunk in chunks])
    np.testing.assert_array_equal(margins, np.asarray(new["start"], np.float32))
    assert np.concatenate([np.asarray(chunk.kept["id"]) for chunk in chunks]).tolist() == new["id"]
    labelled = predicted(source, dataset.encoding, with_labels=True, path=str(tmp_path / f"t.{source}"), **KEYS)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in labelled]), columns["y"])


@pytest.mark.parametrize(
    ("labels", "task", "message"),
    [
        ([0.5, 1.5, float("nan"), 2.5], "regression", "row 3 has no label \\('y' is empty or NaN\\)"),
        (
            ["p", "q", "q", "new"],
            "classification",
            "row 4 has the label y='new', which is in no row of the train files",
        ),
    ],
)
def test_labels_of_new_rows_are_looked_at_to_evaluate_only(load, tmp_path, memory, labels, task, message):
    x = [1.0, 2.0, 3.0, 4.0]
    trained = write("parquet", tmp_path / "t", {"a": x, "y": [*labels[:2], *labels[:2]]})
    keys = {"label": "y", "task": task}
    dataset = load("parquet", path=trained, memory=memory, split={"test": 0}, **keys)
    new = str(tmp_path / "new.parquet")
    parquet.write_table(pa.table({"a": x, "y": labels}), new, row_group_size=2)
    chunks = predicted("parquet", dataset.encoding, path=new, **keys)
    assert np.concatenate([chunk.x for chunk in chunks])[:, 0].tolist() == x
    assert all(chunk.y is None for chunk in chunks)
    with pytest.raises(DatasetError, match=rf"new\.parquet: {message}"):
        predicted("parquet", dataset.encoding, with_labels=True, path=new, **keys)
    with pytest.raises(DatasetError, match=r"t\.parquet: dataset\.label names 'z', which is not a column"):
        predicted("parquet", dataset.encoding, with_labels=True, path=trained, **{**keys, "label": "z"})


def test_rows_in_messages_count_from_the_beginning_of_the_file(load, tmp_path, memory):
    dataset = load("parquet", path=write("parquet", tmp_path / "t", sales()), memory=memory, **KEYS)
    columns = sales()
    columns["size"][77] = np.inf
    new = write("parquet", tmp_path / "new", columns)
    with pytest.raises(DatasetError, match=r"new\.parquet: feature 'size' is infinite.* in row 78\."):
        predicted("parquet", dataset.encoding, path=new, **KEYS)
    with pytest.raises(DatasetError, match=r"new\.parquet: feature 'size' is infinite.* in row 78\."):
        own_rows(load("parquet", path=new, memory=memory, normalize=False, split={"test": 0}, **KEYS).splits["train"])


def test_queries_of_new_rows_are_known_to_evaluate(load, tmp_path, source):
    columns = {"a": np.arange(9.0), "q": ["u"] * 4 + ["v"] * 5, "grade": np.arange(9) % 3}
    keys = {"path": write(source, tmp_path / "t", columns), "label": "grade", "group": "q", "task": "ranking"}
    dataset = load(source, **keys, split={"test": 0})
    (chunk,) = predicted(source, dataset.encoding, with_labels=True, **keys)
    (rows,) = dataset.splits["train"].own_rows(0, 1)
    np.testing.assert_array_equal(chunk.group, rows["group"])


def test_means_of_training_fill_new_rows(load, tmp_path, source, memory):
    columns = {"a": [1.0, None, 3.0, 5.0], "b": ["u", "v", "u", None], "y": [0, 1, 0, 1]}
    keys = {"label": "y", "on_missing": "mean"}
    path = write(source, tmp_path / "t", columns)
    dataset = load(source, path=path, memory=memory, split={"test": 0}, **keys)
    new = write(source, tmp_path / "n", {"a": pa.array([None, 7.0]), "b": ["v", "v"]})
    (chunk,) = predicted(source, dataset.encoding, path=new, **keys)
    np.testing.assert_array_equal(chunk.x, [[3, 1], [7, 1]])


def test_several_features_of_one_name_are_refused_or_left_out(load, tmp_path, source):
    table = pa.table([[1, 2], [3, 4], [5, 6], [0, 1]], names=["a", "z", "z", "y"])
    path = write(source, tmp_path / "t", table)
    with pytest.raises(DatasetError, match=r"there are 2 columns 'z'\.\nRename .*dataset\.drop=\[z\]"):
        load(source, path=path, label="y")
    assert load(source, path=path, label="y", drop=["z"], split={"test": 0}).info.feature_names == ("a",)


@pytest.mark.parametrize("keys", [{}, {"ids": ["id"]}, {"drop": ["a"]}])
def test_several_columns_of_a_feature_are_renamed_in_new_rows(load, tmp_path, source, keys):
    dataset = load(source, path=write(source, tmp_path / "t", {"a": range(4), "y": [0, 1] * 2}), label="y")
    path = write(source, tmp_path / "n", pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "a", "id"]))
    with pytest.raises(DatasetError, match=r"there are 2 columns 'a'\.\nRename all but one$"):
        predicted(source, dataset.encoding, path=path, label="y", **keys)


@pytest.mark.parametrize("more", [["id", "note"], ["id"]])
def test_several_columns_of_one_name_are_kept_beside_no_prediction(load, tmp_path, source, more):
    dataset = load(source, path=write(source, tmp_path / "t", {"a": range(4), "y": [0, 1] * 2}), label="y")
    table = pa.table([[1, 2], [3, 4], [5, 6], *([7, 8] for _ in more)], names=["a", "z", "z", *more])
    path = write(source, tmp_path / "n", table)
    with pytest.raises(DatasetError, match=rf"several columns 'z'[\s\S]*dataset\.ids=\[{','.join(more)}\]"):
        predicted(source, dataset.encoding, path=path, label="y")
    (chunk,) = predicted(source, dataset.encoding, path=path, label="y", ids=more)
    assert chunk.kept["id"].to_pylist() == [7, 8]


def test_what_is_wrong_with_new_rows_is_told_without_keys_that_only_training_has(load, tmp_path, source):
    dataset = load(source, path=write(source, tmp_path / "t", {"a": range(4), "y": [0, 1] * 2}), label="y")
    for values in ([None, "x"], [1.5, None], ["2024-01-01", "2024-01-02"]):
        with pytest.raises(DatasetError, match=r"'a'") as caught:
            predicted(
                source, dataset.encoding, path=write(source, tmp_path / "n", {"a": values, "b": [1, 2]}), label="y"
            )
        assert "dataset." not in str(caught.value)


@pytest.mark.parametrize("texts", [["1,000", "2,500"], ["10%", "20%"], ["$1", "$2"]])
def test_numbers_that_are_taken_as_categories_are_told_of(load, tmp_path, source, memory, caplog, texts):
    path = write(source, tmp_path / "t", {"a": texts * 4, "b": ["p", "q"] * 4, "y": [0, 1] * 4})
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}}
    load(source, **keys)
    (told,) = [record.getMessage() for record in caplog.records]
    assert f"'{texts[0]}'" in told
    assert "'dataset.categorical=[a,b]'" in told
    caplog.clear()
    load(source, **keys, categorical=["a", "b"])
    assert not caplog.records


def test_a_feature_that_a_new_file_lacks_is_named(load, tmp_path, source):
    dataset = load(source, path=write(source, tmp_path / "t", sales()), **KEYS)
    columns = sales()
    columns["colours"] = columns.pop("colour")
    with pytest.raises(DatasetError, match=r"n\.\w+: .*no column 'colour'[\s\S]*did you mean: colours"):
        predicted(source, dataset.encoding, path=write(source, tmp_path / "n", columns), **KEYS)


def test_tables_in_memory_are_read_alike():
    conf = ColumnsConf(**KEYS)
    dataset = load_arrow("frame", {"train": pa.table(sales())}, conf, "frame")
    reader = open_arrow_rows({"train": pa.table(sales())}, conf, dataset.encoding, "frame")
    (chunk,) = reader.read(reader.pieces[0])
    assert chunk.x.shape == (NUM_ROWS, 3)
    assert np.asarray(chunk.kept["id"]).tolist() == sales()["id"].tolist()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"weight": "ww"}, "dataset.weight names 'ww', which is not a column"),
        ({"weight": "bad"}, "'bad' is negative in row 3"),
        ({"base_margin": ["word"]}, "'word' is of type .*string.*, not a number"),
        ({"base_margin": ["gap"]}, "'gap' is empty, NaN or infinite in row 2"),
        ({"group": "gap", "task": "ranking"}, "dataset.group 'gap' is empty in row 2"),
        ({"group": "gap"}, r"dataset\.group=gap[\s\S]*dataset\.task=ranking"),
        ({"task": "ranking"}, "dataset.group="),
        ({"drop": ["sze"]}, "dataset.drop names 'sze'"),
        ({"categorical": ["wrd"]}, r"not a feature[\s\S]*did you mean: word"),
        ({"categorical": ["gap"], "features": ["gap"]}, "'gap' should be a category, but contains (double|fractions)"),
        ({"features": ["size"], "ids": ["size"]}, "has another role"),
    ],
)
def test_a_wrong_use_of_a_column_is_an_error(load, tmp_path, source, keys, message):
    columns = {
        "size": [1, 2, 3, 4],
        "bad": [1, 1, -1, 1],
        "word": ["a", "b", "c", "d"],
        "gap": [1.5, None, 2, 3],
        "y": [0, 1] * 2,
    }
    with pytest.raises(DatasetError, match=message):
        load(source, path=write(source, tmp_path / "t", columns), label="y", **keys)


def test_streamed_groups_are_refused(load, tmp_path, source):
    with pytest.raises(DatasetError, match=r"dataset\.group: groups can be kept together only in memory"):
        load(
            source,
            path=write(source, tmp_path / "t", sales()),
            label="y",
            group="shop",
            task="ranking",
            memory="stream",
        )


def test_trainers_of_numbers_name_the_features_with_missing_values(load, tmp_path, source, memory):
    columns = {"a": [1.0, None] * 10, "b": range(20), "c": ["p", None] * 10, "y": [0, 1] * 10}
    keys = {"path": write(source, tmp_path / "t", columns), "label": "y", "memory": memory}
    info = load(source, **keys, on_missing="keep").info
    assert info.missing == ("a",)
    with pytest.raises(ConfigError, match=rf"c of {source} are categories, and .* missing in a\.[\s\S]*=mean"):
        check_quantities("torch", info)
    with pytest.raises(
        ConfigError, match=rf"torch trainer does not support missing values, .* a of {source}[\s\S]*=mean"
    ):
        check_quantities("torch", load(source, **keys, on_missing="keep", drop=["c"]).info)
    assert load(source, **keys, on_missing="mean").info.missing == ()


def test_trainers_that_cannot_start_from_scores_refuse_them(load, tmp_path):
    path = write("csv", tmp_path / "t", {"a": [1, 2, 3], "start": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    keys = {"path": path, "label": "y", "split": {"test": 0}}
    check_task("torch", load("csv", **keys, drop=["start"]).info, ("classification",))
    with pytest.raises(ConfigError, match=r"torch trainer can't start from scores[\s\S]*trainer=xgboost"):
        check_task("torch", load("csv", **keys, base_margin=["start"]).info, ("classification",))


def test_trainers_of_numbers_name_the_categories(load, tmp_path, source):
    info = load(source, path=write(source, tmp_path / "t", sales()), **KEYS).info
    with pytest.raises(ConfigError, match=rf"colour of {source} are categories[\s\S]*dataset\.drop=\[colour\]"):
        check_quantities("torch", info)


def test_texts_that_name_rows_are_told_of(load, tmp_path, memory, caplog):
    rows = range(200)
    columns = {
        "id": [f"r{one}" for one in rows],
        "kind": [f"k{one % 9}" for one in rows],
        "y": [one % 2 for one in rows],
    }
    load("parquet", path=write("parquet", tmp_path / "t", columns), label="y", memory=memory, split={"test": 0})
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("feature 'id' has 200 different texts in 200 rows")


QUERIES = {"whole": pa.int64(), "small": pa.int16(), "fractions": pa.float64(), "text": pa.string()}


@pytest.mark.parametrize("first", QUERIES)
@pytest.mark.parametrize("second", QUERIES)
def test_queries_of_several_files_are_named_alike_or_refused(load, tmp_path, first, second):
    rows = np.arange(80)
    for name in (first, second):
        query = pa.array(rows % 40).cast(QUERIES[name])
        table = pa.table({"x": rows / 3, "query": query, "y": rows % 3})
        parquet.write_table(table, tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet")
    keys = {"path": str(tmp_path), "label": "y", "task": "ranking", "group": "query"}
    if (first == "text") != (second == "text"):
        with pytest.raises(DatasetError, match=r"column 'query' contains .*, but in .* it contains"):
            load("parquet", **keys)
        assert load("parquet", **keys, dtypes={"query": "string"})
        return
    splits = load("parquet", **keys).splits
    groups = [set(part["group"]) for split in splits.values() for part in split.own_rows(0, 1)]
    assert len(set.union(*groups)) == sum(map(len, groups)) == 40


@pytest.mark.parametrize(
    "columns",
    [
        ([1, 2, 3, 4], [1.5, 1, 2, 2.5]),
        ([1.0, 2.0, 3.0, 4.0], [1.5, 1, 2, 2.5]),
        ([1, 2, 3, 4], [Decimal("1.50"), Decimal("1.00"), Decimal("2.00"), Decimal("2.50")]),
    ],
)
def test_a_group_is_the_same_beside_fractions_as_beside_whole_numbers(columns):
    first, second = (
        Roles(group="q").decode(pa.table({"q": values}), "frame", 0)["group"].tolist() for values in columns
    )
    assert first == [1, 2, 3, 4]
    assert second[1:3] == [1, 2]
    assert len({*second, *first}) == 6
    (alone,) = Roles(group="q").decode(pa.table({"q": [1.5]}), "frame", 0)["group"].tolist()
    assert alone == second[0]


@pytest.mark.parametrize(
    ("there", "keys", "message"),
    [
        (["x.y", "b"], {}, r"'y', which is not a column\.\nIf the labels have another name: dataset\.label=COLUMN$"),
        (["x.y", "b", "yy"], {}, r"'y', which is not a column\.\ndid you mean: dataset\.label=yy$"),
        (["x.y", "b", "y"], {"label": "x.y"}, r"'x\.y', which is a feature of the model\.$"),
    ],
)
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_a_feature_is_no_label_to_evaluate_with(load, open_rows, tmp_path, there, keys, message, memory):
    columns = {"x.y": [0.5, 1.5] * 20, "b": [1.0, 2.0] * 20, "y": [0.1, 0.7] * 20}
    csv.write_csv(pa.table(columns), tmp_path / "train.csv")
    dataset = load("csv", path=str(tmp_path / "train.csv"), label="y", memory=memory)
    csv.write_csv(pa.table({name: columns.get(name, columns["y"]) for name in there}), tmp_path / "new.csv")
    with pytest.raises(DatasetError, match=message):
        open_rows("csv", dataset, True, path=str(tmp_path / "new.csv"), **{"label": "y", **keys})


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("new", ["csv", "parquet", "json"])
@pytest.mark.parametrize("trained", ["csv", "parquet", "json"])
def test_an_empty_text_is_the_same_in_each_format(load, open_rows, tmp_path, trained, new, memory):
    texts, numbers = ["a", "", "b", "c"] * 20, list(range(80))
    table = pa.table({"t": texts, "n": numbers, "y": [one / 7 for one in numbers]})
    csv.write_csv(table, tmp_path / "x.csv")
    parquet.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "x.json").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    keys = {"label": "y", "memory": memory, "on_missing": "keep", "split": {"test": 0}}
    dataset = load(trained, path=str(tmp_path / f"x.{trained}"), **keys)
    own, found = (open_rows(kind, dataset, path=str(tmp_path / f"x.{kind}"), **keys) for kind in (trained, new))
    np.testing.assert_array_equal(found.x, own.x)
    known = int(np.count_nonzero(~np.isnan(own.x[:, 0])))
    assert known == (60 if trained == "csv" else 80)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_empty_text_that_training_had_as_missing_is_not_unseen(load, tmp_path, kind):
    table = pa.table({"t": ["a", None, "b", "c"] * 20, "y": [one / 7 for one in range(80)]})
    csv.write_csv(table, tmp_path / "x.csv")
    dataset = load("csv", path=str(tmp_path / "x.csv"), label="y", on_missing="keep")
    new = pa.table({"t": ["", "", "a", "z"]})
    csv.write_csv(new, tmp_path / "new.csv")
    parquet.write_table(new, tmp_path / "new.parquet")
    conf = TypeAdapter(confs()[kind]).validate_python({"path": str(tmp_path / f"new.{kind}"), "label": "y"})
    reader = load_source(kind).open_rows(conf, dataset.encoding)
    (chunk,) = [chunk for piece in reader.pieces for chunk in reader.read(piece)]
    assert chunk.categories == {"t": (1, 2)}
