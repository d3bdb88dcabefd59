"""``rtrain init``: what it writes trains, whatever the table; what it can't do, it says, and writes nothing."""

from __future__ import annotations

import contextlib
import datetime
import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv, parquet
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from rtrain.cli.app import run
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.run_lines import next_command
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.training.preparation import check_job, load_dataset, try_job

ROWS = 300


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def bunch(load):
    data = load(as_frame=True)
    return pa.Table.from_pandas(data.frame, preserve_index=False)


def prepare(config, words=()):
    """Read the data and check everything, as ``rtrain fit`` does before it writes anything; return the dataset."""
    with Session(config, list(words), schemas()) as session:
        composed = session.check()
        dataset = load_dataset(composed, SilentObserver(), None)
        job, plugin = check_job(composed, dataset, SilentObserver())
        try_job(job, plugin)
        return dataset


COLUMNS = {
    "numbers": lambda draw: draw.normal(size=ROWS),
    "gaps": lambda draw: np.where(draw.random(ROWS) < 0.3, None, draw.normal(size=ROWS)),
    "whole": lambda draw: draw.integers(0, 9, ROWS),
    "row_id": lambda draw: draw.permutation(ROWS) + 10**6,
    "customer_id": lambda draw: draw.choice(10**9, ROWS, replace=False),
    "flags": lambda draw: draw.random(ROWS) < 0.5,
    "texts": lambda draw: draw.choice(["NA", "null", "a b", "ü", "${x}", "1e3x"], ROWS),
    "gap_texts": lambda draw: draw.choice(["x", "y", None], ROWS),
    "names": lambda draw: [f"person {one}" for one in range(ROWS)],
    "remarks": lambda draw: [f"remark {one}" for one in draw.integers(0, 250, ROWS)],
    "nearly numbers": lambda draw: ["unknown" if one == 7 else str(one / 2) for one in range(ROWS)],
    "percents": lambda draw: [f"{one} %" for one in draw.integers(0, 100, ROWS)],
    "days": lambda draw: [datetime.date(2020, 1, 1) + datetime.timedelta(days=one) for one in range(ROWS)],
    "times": lambda draw: [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=one) for one in range(ROWS)],
    "same": lambda draw: [3] * ROWS,
    "nothing": lambda draw: pa.nulls(ROWS, pa.float64()),
    "with [signs]*?": lambda draw: draw.normal(size=ROWS),
    "lists": lambda draw: [[1, 2]] * ROWS,
    "yes": lambda draw: draw.normal(size=ROWS),
    "1": lambda draw: draw.normal(size=ROWS),
    "a: b # c": lambda draw: draw.normal(size=ROWS),
}
LABELS = {
    "price": lambda draw: draw.normal(size=ROWS) * 1000,
    "is rare": lambda draw: draw.random(ROWS) < 0.05,
    "kind": lambda draw: draw.choice(["red", "green", "blue"], ROWS),
    "count": lambda draw: draw.integers(0, 3, ROWS),
    "${label}": lambda draw: draw.choice(["yes", "no"], ROWS),
}


def write(columns, ending, **options):
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    if ending == "parquet":
        parquet.write_table(table, "table.parquet")
    elif ending == "json":
        Path("table.json").write_text(json.dumps(table.to_pylist(), default=str))
    else:
        csv.write_csv(table, f"table.{ending}", csv.WriteOptions(**options))
    return f"table.{ending}"


@pytest.mark.parametrize("seed", range(12))
def test_any_table_is_ready_to_train_on_as_it_is(seed, capsys):
    draw = np.random.default_rng(seed)
    ending = ["csv", "parquet", "json", "tsv"][seed % 4]
    label = list(LABELS)[seed % len(LABELS)]
    chosen = draw.permutation(list(COLUMNS))[: draw.integers(3, 12)].tolist()
    nested = [] if ending in ("csv", "tsv") else ["lists"]
    columns = {name: COLUMNS[name](draw) for name in ["numbers", *chosen] if name != "lists" or nested}
    path = write({**columns, label: LABELS[label](draw)}, ending, **({"delimiter": "\t"} if ending == "tsv" else {}))
    assert run(["init", "--dataset", path, "--label", label]) == 0, capsys.readouterr().err
    info = prepare("table.yaml").info
    written = yaml.safe_load(Path("table.yaml").read_text())["dataset"]
    assert set(info.num_rows) == {"train", "val", "test"}
    assert {"numbers", *chosen} & {"whole", "flags", "gaps", "yes", "1"} <= set(info.feature_names)
    assert {"days", "times", "same", "nothing", "nearly numbers", "remarks"} & set(info.feature_names) == set()
    unlisted = {"row_id", "customer_id", "names"} & set(columns)
    assert unlisted <= set(written.get("ids", []))


@pytest.mark.parametrize(
    ("load", "metric", "best"),
    [(load_breast_cancer, "val/logloss", 0.3), (load_wine, "val/mlogloss", 0.5), (load_diabetes, "val/rmse", 80)],
)
def test_what_is_written_trains_a_good_model(load, metric, best):
    import rtrain

    csv.write_csv(bunch(load), "rows.csv")
    assert run(["init", "--dataset", "rows.csv", "--label", "target"]) == 0
    trained = rtrain.fit("rows.yaml")
    assert min(event.metrics[metric] for event in trained.events() if metric in event.metrics) < best
    assert run(shlex.split(next_command(trained.path, trained.manifest))[1:]) == 0


GAPS = "dataset=csv dataset.path=table.csv dataset.label=price num_workers=0"
LOOP = "dataset: {type: csv, path: table.csv, label: price}\ntrainer: {type: TYPE, train_loop: loop:train}\n"


@pytest.mark.parametrize(
    "config", ["xgboost", "lightgbm", "mlp", "jax", "keras", "sklearn", "torch_loop", "xgboost_loop"]
)
def test_missing_values_are_kept_for_trees_and_refused_elsewhere(config, capsys):
    draw = np.random.default_rng(0)
    write({"gaps": COLUMNS["gaps"](draw), "price": draw.choice(["red", "green"], ROWS)}, "csv")
    Path("loop.py").write_text("def train(config):\n    pass\n")
    for name in ("torch", "xgboost"):
        Path(f"{name}_loop.yaml").write_text(LOOP.replace("TYPE", name))
    words = GAPS.split() if "loop" not in config else ["num_workers=0"]
    takes = "xgboost" in config or config in ("lightgbm", "sklearn")
    name = f"{config}.yaml" if "loop" in config else config
    with contextlib.nullcontext() if takes else pytest.raises(ConfigError, match="missing values") as caught:
        prepare(name, words)
    assert takes or "gaps" in str(caught.value)


@pytest.mark.parametrize("kind", ["number", "text"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("label", ["absent", "empty"])
def test_a_file_of_other_rows_beside_it_is_taken_and_one_without_labels_is_told_of(ending, label, kind):
    draw = np.random.default_rng(0)
    values = pa.array(draw.random(ROWS)) if kind == "number" else pa.array(draw.choice(["no", "yes"], ROWS))
    whole = pa.table({"a": draw.normal(size=ROWS), "b": draw.choice(["x", "y"], ROWS), "y": values})
    test = whole.drop_columns("y")
    test = test.append_column("y", pa.nulls(ROWS, values.type)) if label == "empty" else test
    for name, table in (("train", whole), ("valid", whole), ("test", test)):
        (csv.write_csv if ending == "csv" else parquet.write_table)(table, f"{name}.{ending}")
    assert run(["init", "--dataset", f"train.{ending}", "--label", "y", "-o", "mine.yaml"]) == 0
    text = Path("mine.yaml").read_text()
    assert yaml.safe_load(text)["dataset"]["path"] == {"train": f"train.{ending}", "val": f"valid.{ending}"}
    assert f"dataset.path=test.{ending}" in text
    assert prepare("mine.yaml").info.num_rows["val"] == ROWS


def test_a_column_called_as_queries_are_leads_to_a_ranking():
    write({"qid": [row // 5 for row in range(60)], "a": np.arange(60) % 7, "y": np.arange(60) % 3}, "csv")
    assert run(["init", "--dataset", "table.csv", "--label", "y"]) == 0
    assert "(to learn a ranking: task: ranking, group: qid)" in Path("table.yaml").read_text()
    assert prepare("table.yaml", ["dataset.task=ranking", "dataset.group=qid"]).info.task == "ranking"


@pytest.mark.parametrize(
    "name", ["my houses", "-dash", "--label", "Häuser 2024", "a=[b],$c", "${x}", "it's", "~a", "日本", "#"]
)
def test_the_command_that_is_printed_trains_whatever_the_table_is_called(name, capsys):
    draw = np.random.default_rng(0)
    csv.write_csv(pa.table({"a": draw.normal(size=ROWS), "y": draw.normal(size=ROWS)}), f"{name}.csv")
    assert run(["init", f"--dataset={name}.csv", "--label", "y"]) == 0
    words = shlex.split(capsys.readouterr().out.rpartition("next")[2])
    assert run([*words[1:], "trainer.num_boost_round=1", "num_workers=0"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("seed", range(4))
def test_a_file_without_a_header_gets_names(seed, capsys):
    draw = np.random.default_rng(seed)
    kinds = draw.choice(["numbers", "whole", "gap_texts", "flags"], draw.integers(1, 5)).tolist()
    columns = {f"{kind}{place}": COLUMNS[kind](draw) for place, kind in enumerate(kinds)}
    name, sign = ("rows.data", "rows.csv", "rows.txt", "rows")[seed], (",", "\t", ";", "|")[seed]
    table = pa.table({"numbers": draw.normal(size=ROWS), **columns, "y": draw.integers(0, 2, ROWS)})
    csv.write_csv(table, name, csv.WriteOptions(include_header=False, delimiter=sign))
    label = f"c{len(kinds) + 1}"
    for words in ([], ["--label", "income"]):
        assert run(["init", "--dataset", name, *words]) == 2
        assert f"{label} (" in capsys.readouterr().err
    assert run(["init", "--dataset", name, "--label", label]) == 0
    written = yaml.safe_load(Path("rows.yaml").read_text())["dataset"]
    assert written["names"] == [f"c{place}" for place in range(len(kinds) + 2)]
    assert "without a header" in Path("rows.yaml").read_text()
    assert sum(prepare("rows.yaml").info.num_rows.values()) == ROWS


def test_a_file_that_is_there_is_never_replaced(capsys):
    path = write({"a": [1, 2, 3], "y": [0.5, 1.5, 2.5]}, "csv")
    Path("table.yaml").write_text("mine")
    assert run(["init", "--dataset", path, "--label", "y"]) == 2
    assert "--output" in capsys.readouterr().err
    assert Path("table.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "table.csv"], "--label"),
        (["--dataset", "table.csv", "--label", "z"], "a, y"),
        (["--dataset", "table.csv", "--label", "yy"], "did you mean: y\n"),
        (["--dataset", "twice.csv", "--label", "y"], "Rename all but one\n"),
        (["--dataset", "tabel.csv", "--label", "y"], "table.csv"),
        (["--dataset", ".", "--label", "y"], ".csv"),
        (["--dataset", "table.csv", "--label", "y", "-o", "x.yml"], ".yaml"),
        (["--dataset", "gaps.csv", "--label", "y"], "row 2"),
        (["--dataset", "photo.png", "--label", "y"], "images"),
    ],
)
def test_what_it_cannot_do_is_told_and_nothing_is_written(capsys, words, said):
    write({"a": [1, 2, 3], "y": [0.5, 1.5, 2.5]}, "csv")
    csv.write_csv(pa.table({"a": [1, 2, 3], "y": [0.5, None, 2.5]}), "gaps.csv")
    Path("twice.csv").write_text("a,a,y\n1,2,3\n")
    assert run(["init", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(Path().glob("*.y*ml"))


@pytest.mark.parametrize("written", ["${:,}.00", "{:,}", "€ {}", "{} EUR", "{}%", "{:_},50", "{:_}"])
def test_amounts_are_left_out_with_what_keeps_them_from_being_numbers(written, capsys):
    rows = {
        "x": np.arange(150.0),
        "amount": [written.format(10_000_000 + 7 * n).replace("_", ".") for n in range(150)],
        "y": [0, 1] * 75,
    }
    assert run(["init", "--dataset", write(rows, "csv"), "--label", "y", "--output", "made.yaml"]) == 0
    assert "amount" not in Path("made.yaml").read_text().partition("ids:")[2].partition("\n")[0]
    told = capsys.readouterr()
    assert "would be numbers without" in told.out + told.err + Path("made.yaml").read_text()


@pytest.mark.parametrize("ending", ["csv", "parquet", "tsv"])
def test_a_table_without_rows_is_told_so(ending, capsys):
    path = write({"x": np.zeros(0), "y": np.zeros(0)}, ending)
    assert run(["init", "--dataset", path, "--label", "y"]) == 2
    assert f"{path} has no rows" in capsys.readouterr().err


@pytest.mark.parametrize("count", [150, 60])
def test_texts_of_digits_are_no_amounts(count, capsys):
    digits = [str(10_000 + n % count) for n in range(150)]
    path = write({"x": np.arange(150.0), "code": digits, "y": [0, 1] * 75}, "parquet")
    assert run(["init", "--dataset", path, "--label", "y", "--output", "made.yaml"]) == 0
    told = capsys.readouterr()
    assert "would be numbers" not in told.out + told.err + Path("made.yaml").read_text()


@pytest.mark.parametrize("first", ["00", "7"])
def test_codes_of_classes_keep_their_zeros(first, capsys):
    codes, zips = [("00", "01", "02")[n % 3] for n in range(150)], [f"{n % 50:05d}" for n in range(150)]
    codes[:10] = [first] * 10
    rows = zip([n % 3 for n in range(150)], zips, codes, strict=True)
    Path("t.csv").write_text("x,zip,y\n" + "".join(f"{x},{place},{code}\n" for x, place, code in rows))
    assert run(["init", "--dataset", "t.csv", "--label", "y"]) == 0
    assert "to keep leading zeros: categorical: [zip]" in capsys.readouterr().out
    assert sorted(prepare("t.yaml").info.class_names) == sorted({"00", "01", "02", first})


def of_type(kind):
    """Return values of an Arrow type, some of them equal."""
    numbers = [one % 7 for one in range(ROWS)]
    texts = [f"t{one}" for one in numbers]
    if pa.types.is_nested(kind):
        inner = {"a": 1} if pa.types.is_struct(kind) else [1]
        return pa.array([inner for _ in numbers], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(texts).dictionary_encode()
    is_text = any(name in str(kind) for name in ("string", "binary", "utf8"))
    if is_text:
        return pa.array([one.encode() for one in texts] if "binary" in str(kind) else texts, kind)
    if pa.types.is_boolean(kind):
        return pa.array([one > 3 for one in numbers])
    if pa.types.is_temporal(kind):
        whole = pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64())
        return whole.cast(kind)
    if pa.types.is_null(kind):
        return pa.nulls(ROWS)
    return pa.array(numbers, pa.int64()).cast(kind)


TYPES = [
    *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
    *(pa.decimal128(30, 2), pa.decimal256(40, 2), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary(2), pa.dictionary(pa.int32(), pa.string())),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.time32("s"), pa.time64("us"), pa.duration("us")),
    *(pa.list_(pa.int64()), pa.struct([("a", pa.int64())])),
]


@pytest.mark.parametrize("role", ["feature", "only feature", "label"])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: str(kind).replace("[", "-").rstrip("]"))
def test_a_column_of_any_type_of_arrow_is_taken_left_out_or_refused(kind, role, capsys):
    others = {} if role == "only feature" else {"a": np.arange(ROWS) % 5}
    parquet.write_table(pa.table({**others, "one": of_type(kind), "y": np.arange(ROWS) % 2}), "rows.parquet")
    label = "one" if role == "label" else "y"
    code, said = run(["init", "--dataset", "rows.parquet", "--label", label]), capsys.readouterr()
    assert "Traceback" not in said.err
    if code == 0:
        prepare("rows.yaml")
    else:
        assert (code, Path("rows.yaml").exists()) == (2, False)
        assert said.err.startswith("error: ")
        assert "one" in said.err


OF_ONE_COLUMN = {
    "years": lambda: list(range(1900, 1900 + ROWS)),
    "ids": lambda: list(range(ROWS)),
    "numbers": lambda: [one * 0.5 for one in range(ROWS)],
    "names": lambda: [f"person {one}" for one in range(ROWS)],
    "constant": lambda: [1] * ROWS,
    "dates": lambda: [datetime.date(1990, 1, 1) + datetime.timedelta(one) for one in range(ROWS)],
    "nothing": lambda: None,
}


@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_a_table_of_one_column_and_the_label_trains_or_is_refused(name, capsys):
    values = OF_ONE_COLUMN[name]()
    table = pa.table({**({} if values is None else {name: values}), "y": np.arange(ROWS) * 0.25})
    csv.write_csv(table, "rows.csv")
    code, said = run(["init", "--dataset", "rows.csv", "--label", "y"]), capsys.readouterr()
    assert code == (0 if name in ("years", "ids", "numbers") else 2)
    if code == 0:
        assert prepare("rows.yaml").info.feature_names == (name,)
    else:
        assert "there is nothing to predict y by" in said.err
        assert not Path("rows.yaml").exists()
