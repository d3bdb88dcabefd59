"""Splits of tables that a column decides, or the rows' content, from every source of tables."""

from __future__ import annotations

import datetime
import json
import re
import sqlite3
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from pydantic import TypeAdapter, ValidationError

from rtrain.config.targets.allow_list import use_project_root
from rtrain.datasets.base import EpochPlan
from rtrain.datasets.conf import TableSplitConf
from rtrain.errors import DatasetError

NUM_ROWS = 200
SPLITS = ("train", "val", "test")


def sales(num_rows=NUM_ROWS):
    """Return rows whose feature ``x`` is their number, in no order of time."""
    row = np.arange(num_rows)
    day = (row * 37) % num_rows
    return {
        "x": row.astype(float),
        "customer": [f"c{one % 20}" for one in row],
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(one)) for one in day],
        "fold": row % 5,
        "part": [("train", "valid", "TEST", "train", "train")[one % 5] for one in row],
        "ticket": row + 5000,
        "y": row * 2 + 0.5,
    }


def write_csv(folder, columns):
    csv.write_csv(pa.table(columns), folder / "sales.csv")
    return {"path": str(folder / "sales.csv")}


def write_parquet(folder, columns):
    parquet.write_table(pa.table(columns), folder / "sales.parquet", row_group_size=60)
    return {"path": str(folder / "sales.parquet")}


def write_json(folder, columns):
    rows = pa.table(columns).to_pylist()
    (folder / "sales.jsonl").write_text("\n".join(json.dumps(row, default=str) for row in rows))
    return {"path": str(folder / "sales.jsonl")}


def write_sql(folder, columns):
    table = pa.table(columns)
    with sqlite3.connect(folder / "sales.db") as database:
        database.execute(f"CREATE TABLE sales ({', '.join(table.schema.names)})")
        rows = [
            [str(one) if isinstance(one, datetime.date) else one for one in row.values()] for row in table.to_pylist()
        ]
        database.executemany(f"INSERT INTO sales VALUES ({','.join('?' * table.num_columns)})", rows)
    return {"url": f"sqlite:///{folder / 'sales.db'}", "query": "sales"}


def write_delta(folder, columns):
    pytest.importorskip("deltalake").write_deltalake(str(folder / "sales"), pa.table(columns))
    return {"path": str(folder / "sales")}


def write_huggingface(folder, columns):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    datasets.Dataset(pa.table(columns)).save_to_disk(str(folder / "sales"))
    return {"path": str(folder / "sales")}


def write_python(folder, columns):
    parquet.write_table(pa.table(columns), folder / "sales.parquet")
    (folder / "sales_frames.py").write_text(
        "import pandas\n\n\ndef load(path):\n    return pandas.read_parquet(path)\n"
    )
    return {"function": "sales_frames:load", "arguments": {"path": str(folder / "sales.parquet")}}


WRITERS = {
    "csv": write_csv,
    "parquet": write_parquet,
    "json": write_json,
    "sql": write_sql,
    "delta": write_delta,
    "huggingface": write_huggingface,
    "python": write_python,
}


@pytest.fixture
def read(load, tmp_path, monkeypatch):
    """Return a function that writes columns for a source and gives the rows' numbers in each split."""

    def read(source, columns, **keys):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        places = WRITERS[source](folder, columns)
        if source == "python":
            monkeypatch.setattr(sys, "path", list(sys.path))
            monkeypatch.delitem(sys.modules, "sales_frames", raising=False)
            use_project_root(folder)
        keys = {"label": "y", "drop": ["customer", "day", "fold", "part", "ticket"], **keys}
        dataset = load(source, **places, **keys)
        assert dataset.info.feature_names == ("x",)
        found = {}
        for name, split in dataset.splits.items():
            columns = list(split.own_rows(0, 1))
            assert not {key for part in columns for key in part if key.startswith("split")}
            found[name] = np.sort(np.concatenate([part["x"][:, 0] for part in columns])).astype(int)
        return found

    return read


@pytest.fixture(params=list(WRITERS))
def source(request):
    return request.param


def test_rows_of_a_group_lie_in_one_split(read, source):
    found = read(source, sales(), split={"by_group": "customer", "val": 0.1, "test": 0.2})
    customers = {name: set((rows % 20).tolist()) for name, rows in found.items()}
    assert {name: len(values) for name, values in customers.items()} == {"train": 14, "val": 2, "test": 4}
    assert len(set.union(*customers.values())) == 20
    assert sum(len(rows) for rows in found.values()) == NUM_ROWS


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(("keys", "num_groups"), [({"sample": 0.5}, 10), ({"limit": 35}, 3), ({"limit": 3}, 1)])
def test_a_sample_keeps_or_drops_a_group_as_a_whole(load, tmp_path, memory, keys, num_groups):
    split = {"by_group": "customer", "test": 0}
    files = write_parquet(tmp_path, sales())
    found = load("parquet", **files, label="y", features=["x"], normalize=False, memory=memory, split=split, **keys)
    x = np.concatenate([one["x"] for one in found.splits["train"].own_rows(0, 1)])
    assert np.unique(x % 20, return_counts=True)[1].tolist() == [10] * num_groups
    assert found.info.num_rows == {"train": len(x)}


def test_the_oldest_rows_train_and_the_newest_are_the_test(read, source):
    found = read(source, sales(), split={"by_time": "day", "val": 0.1, "test": 0.2})
    days = {name: np.sort(rows * 37 % NUM_ROWS).tolist() for name, rows in found.items()}
    assert days == {"train": list(range(140)), "val": list(range(140, 160)), "test": list(range(160, 200))}


def test_a_column_says_which_split_a_row_belongs_to(read, source):
    found = read(source, sales(), split={"by_column": "part"})
    assert set((found["val"] % 5).tolist()) == {1}
    assert set((found["test"] % 5).tolist()) == {2}
    assert [len(found[name]) for name in SPLITS] == [120, 40, 40]


def test_values_of_a_column_can_be_given_for_val_and_test(read, source):
    found = read(source, sales(), split={"by_column": {"column": "fold", "val": [3], "test": [4]}})
    assert {name: set((rows % 5).tolist()) for name, rows in found.items()} == {
        "train": {0, 1, 2},
        "val": {3},
        "test": {4},
    }


def test_by_hash_a_row_keeps_its_split_when_rows_come_and_go_and_change_places(read, source):
    first = read(source, sales(), split={"by_hash": "ticket", "val": 0.1, "test": 0.2})
    more = {name: list(values) for name, values in sales(300).items()}
    order = np.random.default_rng(0).permutation(300)[:280]
    moved = read(
        source,
        {name: [values[row] for row in order] for name, values in more.items()},
        split={"by_hash": "ticket", "val": 0.1, "test": 0.2},
    )
    for name in SPLITS:
        kept = np.intersect1d(first[name], order)
        assert set(kept.tolist()) == set(moved[name][moved[name] < NUM_ROWS].tolist())
    assert 0.1 < len(first["test"]) / NUM_ROWS < 0.3


def test_shares_of_a_table_are_the_same_rows_in_any_order(read, source):
    columns = sales()
    order = np.random.default_rng(1).permutation(NUM_ROWS)
    moved = {name: [values[row] for row in order] for name, values in columns.items()}
    first, again, other = (
        read(source, table, split={"val": 0.1, "test": 0.2}, limit=150, seed=seed)
        for table, seed in ((columns, 0), (moved, 0), (columns, 1))
    )
    assert [len(first[name]) for name in SPLITS] == [105, 15, 30]
    for name in SPLITS:
        assert first[name].tolist() == again[name].tolist()
        assert first[name].tolist() != other[name].tolist()


STREAMED = {
    "by_group": {"by_group": "customer", "val": 0.2, "test": 0.3},
    "by_hash": {"by_hash": "ticket", "val": 0.1, "test": 0.2},
    "by_time": {"by_time": "day", "val": 0.1, "test": 0.2},
    "by_column": {"by_column": "part"},
    "by_values": {"by_column": {"column": "fold", "test": [4]}, "by_hash": ["ticket", "customer"], "val": 0.2},
    "by_values_and_time": {"by_column": {"column": "fold", "test": [4]}, "by_time": "day", "val": 0.2},
}


@pytest.mark.parametrize("source", ["csv", "parquet", "json"])
@pytest.mark.parametrize("way", list(STREAMED))
def test_streamed_rows_are_split_as_those_in_memory(read, source, way):
    streamed = read(source, sales(), split=STREAMED[way], memory="stream")
    assert sorted(np.concatenate(list(streamed.values())).tolist()) == list(range(NUM_ROWS))
    assert set(streamed) >= {"train", "val", "test"}
    if way == "by_group":
        customers = {name: set((rows % 20).tolist()) for name, rows in streamed.items()}
        assert sum(len(values) for values in customers.values()) == 20, "a group is in one split"
        return
    resident = read(source, sales(), split=STREAMED[way], memory="resident")
    for name in resident:
        assert resident[name].tolist() == streamed[name].tolist()


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("way", list(STREAMED))
def test_workers_share_the_rows_of_a_split_however_many_there_are(load, tmp_path, way, memory):
    path = write_parquet(tmp_path, sales())["path"]
    splits = load("parquet", path=path, label="y", features=["x"], split=STREAMED[way], memory=memory).splits
    for split in splits.values():
        rows = []
        for world_size in (1, 2, 3):
            own = [part["x"] for rank in range(world_size) for part in split.own_rows(rank, world_size)]
            passes = [EpochPlan(rank=r, world_size=world_size, global_batch_size=8, seed=3) for r in range(world_size)]
            batches = [batch.x for one in passes for batch in split.batches(one)]
            rows += [np.sort(np.concatenate(parts)[:, 0]).tolist() for parts in (own, batches)]
        assert all(found == rows[0] for found in rows)
        assert len(rows[0]) == split.num_rows


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("way", ["by_hash", "by_column", "by_values"])
def test_a_sample_of_a_table_keeps_each_row_in_its_split(load, tmp_path, way, memory):
    path = write_parquet(tmp_path, sales(1000))["path"]
    keys = {"path": path, "label": "y", "features": ["x"], "split": STREAMED[way], "memory": memory}
    whole, some = (load("parquet", **keys, **more) for more in ({}, {"sample": 0.4}))
    assert sum(some.info.num_rows.values()) == 400
    for name in SPLITS:
        few, all_rows = (
            {row for part in dataset.splits[name].own_rows(0, 1) for row in part["x"][:, 0].tolist()}
            for dataset in (some, whole)
        )
        assert few < all_rows


def test_a_sample_of_a_streamed_table_is_evenly_spread(load, tmp_path):
    path = write_parquet(tmp_path, sales(1000))["path"]
    keys = {"label": "y", "features": ["x"], "split": {"test": 0}, "memory": "stream"}
    train = load("parquet", path=path, sample=0.1, **keys).splits["train"]
    rows = np.concatenate([part["x"][:, 0] for part in train.own_rows(0, 1)])
    assert (train.num_rows, len(rows)) == (100, 100)
    assert np.histogram(rows, 10, (0, 1000))[0].tolist() == [10] * 10


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_limit_counts_all_splits_that_a_column_makes(load, tmp_path, memory):
    path = write_parquet(tmp_path, sales())["path"]
    info = load(
        "parquet", path=path, label="y", features=["x"], split={"by_column": "part"}, limit=100, memory=memory
    ).info
    assert sum(info.num_rows.values()) == 100
    assert info.num_rows["train"] > 45


def write(tmp_path, **columns):
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(columns), file)
    return str(file)


ROWS = {"x": np.arange(40.0), "y": np.arange(40) + 0.5}


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            {"by_group": "customr"},
            "by_group names 'customr', which is not a column.*did you mean: customer",
        ),
        ({"by_time": "customer"}, r"by_time 'customer' contains no times \(string\)"),
        ({"by_group": "gap"}, "by_group 'gap' is empty in row 3"),
        ({"by_time": "gap"}, "by_time 'gap' is empty in row 3"),
        ({"by_hash": ["x", "gap"]}, "by_hash 'gap' is empty in row 3"),
        (
            {"by_column": "customer"},
            "by_column 'customer' is 'c0' in row 1, which is not mapped to a split.*Known values: train",
        ),
        ({"by_column": {"column": "customer", "test": ["nobody"]}}, "no row of 'customer' belongs to test.*nobody"),
        (
            {"by_column": {"column": "customer", "train": ["c0"], "test": ["c1"]}},
            "is 'c2' in row 3, which is not mapped",
        ),
        ({"by_column": "all"}, "every row of 'all' belongs to train"),
        ({"by_column": "holdout"}, "no row of 'holdout' belongs to train"),
        ({"by_time": "same"}, "split 'train' is empty: equal times stay together"),
        ({"by_time": "half", "val": 0.1, "test": 0.1}, "split 'val' is empty: equal times stay together"),
        ({"by_hash": "same"}, "split 'test' is empty: no value of the split column falls into 0.2 of 40 rows"),
        ({"by_group": "same"}, "split 'test' is empty: .* 0.2 of|split 'test' is empty: 0.2 of 1 groups"),
        ({"by_column": "part", "val": 0.1}, "split.val takes 0.1 of the train rows, but the data already has a val"),
        ({"by_column": "part", "by_time": "x"}, "by_time splits the train rows, but the data already has"),
    ],
)
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_what_a_column_can_not_do_is_said(load, tmp_path, split, message, memory):
    row = np.arange(40)
    columns = {
        **ROWS,
        "customer": [f"c{one % 4}" for one in row],
        "gap": pa.array([None if one == 2 else one for one in row]),
        "all": ["train"] * 40,
        "holdout": ["test"] * 40,
        "same": [7] * 40,
        "half": row // 20,
        "part": [("train", "val")[one % 2] for one in row],
    }
    with pytest.raises(DatasetError) as caught:
        load("parquet", path=write(tmp_path, **columns), label="y", features=["x"], split=split, memory=memory)
    assert re.search(message, str(caught.value), re.DOTALL)


@pytest.mark.parametrize("turned", [1, -1])
@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("source", ["csv", "parquet", "json"])
def test_times_with_an_offset_and_without_one_are_not_compared(load, tmp_path, source, memory, turned):
    times = ["2024-01-01T05:00:00+05:00", *["2024-01-01T01:00:00"] * 39][::turned]
    path = {"csv": write_csv, "parquet": write_parquet, "json": write_json}[source](tmp_path, {**ROWS, "day": times})
    with pytest.raises(DatasetError, match=r"by_time 'day'.* offset"):
        load(source, **path, label="y", features=["x"], split={"by_time": "day"}, memory=memory)


def test_files_of_their_own_leave_nothing_to_a_column(load, tmp_path):
    path = {"train": write(tmp_path, **ROWS, part=["train"] * 40), "test": write(tmp_path, **ROWS, part=["train"] * 40)}
    for memory in ("resident", "stream"):
        for split in ({"by_column": "part"}, {"by_hash": "x"}):
            with pytest.raises(DatasetError, match="the train rows, but the data already has train and test"):
                load("parquet", path=path, label="y", split=split, memory=memory)


def test_two_ways_at_once_are_refused():
    with pytest.raises(ValidationError, match="by_group and by_time contradict each other"):
        TypeAdapter(TableSplitConf).validate_python({"by_group": "a", "by_time": "b"})


@pytest.mark.parametrize(
    "value", [3, {"val": [1]}, {"column": "a"}, {"column": "a", "test": 4}, {"column": "a", "tset": [4]}]
)
def test_a_by_column_that_can_not_be_read_is_refused(value):
    with pytest.raises(ValidationError, match=r"must|can't be read"):
        TypeAdapter(TableSplitConf).validate_python({"by_column": value})


def test_arrays_have_no_columns_to_split_by(load, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "arrays_of_a_split.py").write_text(
        "import numpy as np\n\n\ndef load():\n    return {'x': np.zeros((9, 2)), 'y': np.arange(9) % 2}\n"
    )
    use_project_root(tmp_path)
    with pytest.raises(DatasetError, match="by_time=day names a column of a table, but the arrays of arrays_of"):
        load("python", function="arrays_of_a_split:load", split={"by_time": "day"})


def test_rows_of_one_time_are_not_torn_apart(load, tmp_path):
    month = np.repeat(np.arange(10), 4)
    path = write(tmp_path, **ROWS, month=month)
    splits = load("parquet", path=path, label="y", split={"by_time": "month", "test": 0.15}).splits
    assert splits["test"].columns["x"][:, 0].tolist() == list(range(32, 40)), "6 rows, and those of the same month"


@pytest.mark.parametrize(
    "times",
    [
        [f"2024-0{1 + one % 9}-15" for one in range(40)],
        [f"2024-0{1 + one % 9}-15T12:00:00Z" for one in range(40)],
        [f"2024-0{1 + one % 9}-15 12:00:00+02:00" for one in range(40)],
        pa.array([f"2024-0{1 + one % 9}-15" for one in range(40)]).cast(pa.timestamp("ns")),
        pa.array([f"2024-0{1 + one % 9}-15" for one in range(40)]).dictionary_encode(),
        [2000 + one % 9 for one in range(40)],
        [one % 9 / 2 for one in range(40)],
        pa.array([one % 9 for one in range(40)], pa.duration("s")),
    ],
)
def test_times_come_as_dates_numbers_and_text(load, tmp_path, times):
    path = write(tmp_path, **ROWS, when=times)
    splits = load("parquet", path=path, label="y", split={"by_time": "when", "test": 0.1}).splits
    assert splits["test"].columns["x"][:, 0].tolist() == [8.0, 17.0, 26.0, 35.0]


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(
    "split",
    [
        {"by_group": "who", "test": 0.5},
        {"by_time": "when"},
        {"by_hash": ["who", "x"]},
        {"by_column": {"column": "flag", "test": [True]}},
        {"by_column": {"column": "who", "val": ["a1"]}},
    ],
)
def test_files_without_rows_among_others_change_nothing(load, tmp_path, split, memory):
    when = [f"2024-0{1 + one % 9}-15" for one in range(40)]
    who = [f"a{one % 8}" for one in range(40)]
    table = pa.table({**ROWS, "when": when, "who": who, "flag": [one % 4 == 0 for one in range(40)]})
    for name, rows in (("a", table[:0]), ("b", table[:20]), ("c", table[:0]), ("d", table[20:])):
        parquet.write_table(rows, tmp_path / f"{name}.parquet")
    keys = {"label": "y", "features": ["x"], "split": split, "memory": memory}
    found = load("parquet", path=str(tmp_path), **keys)
    alone = load("parquet", path=write(tmp_path / "x", **dict(zip(table.column_names, table, strict=True))), **keys)
    assert found.info.num_rows == alone.info.num_rows
    assert sum(found.info.num_rows.values()) == 40
    if "by_column" in split:
        assert found.info.num_rows["train"] == {"flag": 30, "who": 35}[split["by_column"]["column"]]


def test_weights_and_preprocessors_leave_rows_in_their_split(load, tmp_path):
    path = write(tmp_path, **ROWS, w=np.arange(40) % 3 + 1)
    keys = {"path": path, "label": "y", "features": ["x"], "normalize": False}
    more = ({}, {"weight": "w"}, {"preprocessors": [{"type": "MinMaxScaler", "columns": ["x"]}]})
    tests = [np.sort(load("parquet", **keys, **one).splits["test"].columns["y"]) for one in more]
    assert all(found.tolist() == tests[0].tolist() for found in tests)
    timed = load("parquet", **keys, **more[2], split={"by_time": "w", "test": 0.3}).splits["test"].columns["y"]
    assert timed.tolist() == [one + 0.5 for one in range(40) if one % 3 == 2]


def test_a_column_to_split_by_is_a_feature_where_it_is_listed(load, tmp_path):
    path = write(tmp_path, **ROWS, month=np.repeat(np.arange(10), 4))
    split = {"by_time": "month"}
    assert load("parquet", path=path, label="y", split=split).info.feature_names == ("x",)
    asked = load("parquet", path=path, label="y", split=split, features=["x", "month"])
    assert asked.info.feature_names == ("x", "month")


def test_parts_without_rows_of_a_split_are_not_read_for_it_and_leave_no_worker_without_any(load, tmp_path):
    columns = {"x": np.arange(200.0), "part": ["train"] * 50 + ["test"] * 150, "y": np.arange(200) + 0.5}
    files = write_parquet(tmp_path, columns)
    found = load("parquet", **files, label="y", memory="stream", split={"by_column": "part"})
    assert [len(found.splits[name].pieces) for name in ("train", "test")] == [1, 4]
    assert [sum(len(one["y"]) for one in found.splits["train"].own_rows(rank, 2)) for rank in (0, 1)] == [25, 25]


@pytest.mark.parametrize("split", [{}, {"by_group": "user"}, {"by_hash": "user"}, {"by_time": "day"}])
def test_queries_of_a_ranking_stay_whole_however_they_are_split(load, tmp_path, split):
    row = np.arange(400)
    query = row // 4 % 80
    order = np.random.default_rng(0).permutation(400)
    columns = {"x": row, "y": row % 3, "query": query, "user": query % 20, "day": query * 10 + row % 2}
    found = []
    for table in (columns, {name: values[order] for name, values in columns.items()}):
        path = write(tmp_path, **table)
        keys = {"label": "y", "task": "ranking", "group": "query", "features": ["x"], "limit": 300}
        splits = load("parquet", path=path, **keys, split=split).splits
        queries = {name: set(one.columns["group"].tolist()) for name, one in splits.items()}
        assert not queries["train"] & queries["test"]
        assert 290 < sum(one.num_rows for one in splits.values()) <= 300
        found.append(queries)
        if split == {"by_time": "day"}:
            assert max(queries["train"]) < min(queries["test"])
        if "user" in split.values():
            assert not {one % 20 for one in queries["train"]} & {one % 20 for one in queries["test"]}
    assert found[0] == found[1]


@pytest.mark.parametrize("key", ["by_hash", "by_group"])
def test_a_column_that_tears_a_query_apart_is_refused(load, tmp_path, key):
    path = write(tmp_path, **ROWS, query=np.arange(40) // 4, user=np.arange(40) // 3)
    with pytest.raises(DatasetError, match=f"{key}: rows of the same dataset.group differ in it"):
        load("parquet", path=path, label="y", task="ranking", group="query", split={key: "user"})


DAYS = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=day) for day in range(20)]
TIMES = {
    "date": pa.array([day.date() for day in DAYS]),
    "timestamp": pa.array(DAYS, pa.timestamp("ms")),
    "nanoseconds": pa.array(DAYS, pa.timestamp("ns")),
    "text": pa.array([str(day.date()) for day in DAYS]),
    "number": pa.array(range(20)),
    "seconds": pa.array(range(20), pa.duration("s")),
    "microseconds": pa.array([day * 10**6 for day in range(20)], pa.duration("us")),
    "of day": pa.array(range(20), pa.time32("s")),
    "of day, exact": pa.array([day * 10**6 for day in range(20)], pa.time64("us")),
}
ALIKE = [{"date", "timestamp", "nanoseconds", "text"}, {"number"}, {"seconds", "microseconds"}]
ALIKE += [{"of day", "of day, exact"}]


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("first", TIMES)
@pytest.mark.parametrize("second", TIMES)
def test_times_of_several_files_are_on_one_scale_or_refused(load, tmp_path, memory, first, second):
    for name, rows in ((first, slice(0, None, 2)), (second, slice(1, None, 2))):
        x = np.arange(20)[rows]
        table = pa.table({"x": x.astype(float), "at": TIMES[name].take(pa.array(x)), "y": x / 7})
        parquet.write_table(table, tmp_path / f"{rows.start}.parquet")
    keys = {"path": str(tmp_path), "label": "y", "split": {"by_time": "at", "val": 0.2, "test": 0.2}}
    if not any({first, second} <= one for one in ALIKE):
        with pytest.raises(DatasetError, match=r"by_time 'at' contains .*, but in .* it contains"):
            load("parquet", **keys, memory=memory)
        return
    splits = load("parquet", **keys, memory=memory, normalize=False).splits
    found = {
        name: sorted(v for part in split.own_rows(0, 1) for v in part["x"][:, 0]) for name, split in splits.items()
    }
    assert found == {"train": [*range(12)], "val": [*range(12, 16)], "test": [*range(16, 20)]}


STARTS = {"2^40": 2**40, "2^53": 2**53, "epoch in ns": 17 * 10**17, "2^60": 2**60, "2^63": 2**63, "10^25": 10**25}


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("write", [write_csv, write_json, write_parquet])
def test_times_that_differ_little_are_different(load, tmp_path, write, start, memory):
    number = (np.arange(NUM_ROWS) * 37) % NUM_ROWS
    apart = 10**12 if STARTS[start] >= 2**63 else 1  # floats hold those beyond int64
    times = [STARTS[start] + int(one) * apart for one in number]
    kind = pa.int64() if STARTS[start] < 2**62 else pa.uint64() if STARTS[start] < 2**64 else pa.decimal128(38, 0)
    columns = {"t": pa.array(times, kind), "x": number.astype(float), "y": number * 2.0}
    if write is write_json and kind == pa.decimal128(38, 0):
        columns["t"] = times
        (tmp_path / "sales.jsonl").write_text(
            "".join(f'{{"t": {t}, "x": {float(n)}, "y": {n * 2.0}}}\n' for t, n in zip(times, number, strict=True))
        )
        keys = {"path": str(tmp_path / "sales.jsonl")}
    else:
        keys = write(tmp_path, columns)
    source = {"write_csv": "csv", "write_json": "json", "write_parquet": "parquet"}[write.__name__]
    keys |= {"label": "y", "features": ["x"], "memory": memory}
    split = {"by_time": "t", "val": 0.1, "test": 0.2}
    found = load(source, **keys, split=split)
    assert found.info.num_rows == {"train": 140, "val": 20, "test": 40}
    rows = [one for rows in found.splits["test"].own_rows(0, 1) for one in rows["x"][:, 0].tolist()]
    assert sorted(rows) == list(range(160, 200))
