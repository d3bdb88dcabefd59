"""Predictions and evaluations from a checkpoint, on new rows of the user's."""

import json
import re
import shutil
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from record_files import example, npy, write_records, write_shard

import rtrain
from rtrain.cli.app import run as command
from rtrain.datasets.base import DatasetInfo, RawChunk
from rtrain.errors import CheckpointError, ConfigError, PredictionError, RtrainError
from rtrain.prediction.output import prediction_table
from rtrain.testing.damage import replace_file


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a CSV file of two numbers and two classes with names."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    kind = np.where(x.sum(axis=1) > 0, "red", "blue")
    ids = [f"row{index}" for index in range(300)]
    csv.write_csv(pa.table({"id": ids, "a": x[:, 0], "b": x[:, 1], "kind": kind}), folder / "rows.csv")
    words = [f"dataset.path={folder}/rows.csv", "dataset=csv", "dataset.label=kind", "dataset.features=[a,b]"]
    return rtrain.fit("lightgbm", [*words, "num_workers=0", f"run.root_dir={folder}/runs"])


@pytest.fixture
def new_rows(tmp_path):
    """New rows in another order of columns, without labels."""
    rows = {"b": [-3.0, 3.0, 2.0], "id": ["x", "y", "z"], "a": [0.1, 0.2, 0.3]}
    parquet.write_table(pa.table(rows), tmp_path / "new.parquet")
    csv.write_csv(pa.table(rows), tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_new_rows_keep_their_order_and_other_columns(trained, new_rows, tmp_path):
    assert rtrain.predict(trained.path, tmp_path / "out.parquet", [f"dataset.path={new_rows}"]) == 3
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert list(found) == ["id", "prediction", "probability_blue", "probability_red"]
    assert found["id"] == ["x", "y", "z"]
    assert found["prediction"] == ["blue", "red", "red"]
    assert np.add(found["probability_blue"], found["probability_red"]) == pytest.approx(np.ones(3))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_alone_names_the_rows_whatever_its_format(trained, new_rows, tmp_path, suffix):
    assert rtrain.predict(trained.path, tmp_path / "out.parquet", [str(new_rows.with_suffix(suffix))]) == 3
    assert parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist() == ["blue", "red", "red"]


@pytest.mark.parametrize("name", ["a b.csv", "a,b.csv", "[1].csv", "{x}.csv", "ünï.csv", "it's.csv", "rows"])
def test_a_path_alone_may_have_any_name(trained, new_rows, tmp_path, name):
    (tmp_path / "other").mkdir()
    new_rows.rename(tmp_path / "other" / name)
    place = tmp_path / "other" / name if name.endswith("csv") else tmp_path / "other"
    if place.is_dir():
        (place / name).rename(place / "rows.csv")
    assert rtrain.predict(trained.path, tmp_path / "out.parquet", [str(place)]) == 3
    assert parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist() == ["blue", "red", "red"]


OF_TEXTS = """
defaults: [{trainer: transformers}, {dataset: text}, {scaling: in_process}]
trainer:
  model:
    config: {model_type: bert, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 8}
  tokenizer: {train: wordpiece, vocab_size: 60}
  max_length: 8
  max_epochs: 1
"""


@pytest.mark.parametrize("kind", ["npz", "folder of arrays", "records", "shards", "table of texts", "texts"])
def test_a_path_alone_is_read_as_in_training(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    x, y, texts = (
        draw.normal(size=(40, 2)),
        np.arange(40) % 2,
        [f"{'good' if row % 2 else 'bad'} {row}" for row in range(40)],
    )
    folder = tmp_path / "data"
    folder.mkdir()
    model = ["sklearn", "num_workers=0"]
    match kind:
        case "npz":
            np.savez(folder / "a.npz", x=x, y=y)
            words, path = ["dataset=numpy"], folder / "a.npz"
        case "folder of arrays":
            np.save(folder / "x.npy", x)
            np.save(folder / "y.npy", y)
            words, path = ["dataset=numpy"], folder
        case "records":
            rows = zip(x.tolist(), y.tolist(), strict=True)
            write_records(folder / "a.tfrecord", [example(a=values, label=[label]) for values, label in rows])
            words, path = ["dataset=tfrecord"], folder / "a.tfrecord"
        case "shards":
            members = [
                (f"{row}.{end}", b) for row in range(40) for end, b in (("npy", npy(x[row])), ("cls", b"%d" % y[row]))
            ]
            write_shard(folder / "a.tar", members)
            words, path = ["dataset=webdataset"], folder / "a.tar"
        case "table of texts":
            csv.write_csv(pa.table({"text": texts, "y": y}), folder / "a.csv")
            words, path = ["dataset=text", "dataset.text=text", "dataset.label=y"], folder / "a.csv"
        case _:
            for text, name in (("good", "a"), ("bad", "b")):
                (folder / name).mkdir()
                for row in range(20):
                    (folder / name / f"{row}.txt").write_text(f"{text} {row}")
            words, path = ["dataset=text", "dataset.task=classification"], folder
    if words[0] == "dataset=text":
        pytest.importorskip("transformers")
        Path("texts.yaml").write_text(OF_TEXTS)
        model = ["texts.yaml"]
    run = rtrain.fit(model[0], [*model[1:], *words, f"dataset.path={path}", f"run.root_dir={tmp_path}/runs"])
    whole = rtrain.predict(run.path, None, [str(path)])
    assert len(whole) == 40
    assert whole.equals(rtrain.predict(run.path, None, [f"dataset.path={path}"]))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_other_formats_hold_the_same(trained, new_rows, tmp_path, ending):
    rtrain.predict(trained.best_checkpoint, tmp_path / f"out.{ending}", [f"dataset.path={new_rows}"])
    text = (tmp_path / f"out.{ending}").read_text().splitlines()
    if ending == "jsonl":
        assert [json.loads(line)["prediction"] for line in text] == ["blue", "red", "red"]
    else:
        assert text[0] == '"id","prediction","probability_blue","probability_red"'


def test_json_lines_are_strict_json_that_tells_infinite_from_missing(trained, tmp_path):
    nan, inf = float("nan"), float("inf")
    kept = {"gap": [nan, 1.0, inf], "parts": [[1.0], [nan, -inf], []], "name": ["ä", None, "z"]}
    parquet.write_table(pa.table({"a": [0.1] * 3, "b": [2.0] * 3, **kept}), tmp_path / "new.parquet")
    words = ["dataset=parquet", f"dataset.path={tmp_path}/new.parquet"]
    rtrain.predict(trained.path, tmp_path / "out.jsonl", words)

    def refuse(text):
        raise AssertionError(text)

    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [row["gap"] for row in rows] == [None, 1.0, "Infinity"]
    assert [row["parts"] for row in rows] == [[1.0], [None, "-Infinity"], []]
    assert [row["name"] for row in rows] == ["ä", None, "z"]


def test_another_source_may_hold_the_rows(trained, new_rows, tmp_path):
    words = ["dataset=parquet", f"dataset.path={new_rows.with_suffix('.parquet')}"]
    assert rtrain.predict(trained.path, tmp_path / "out.csv", words) == 3
    with pytest.raises(ConfigError, match=r"there is no key 'dataset\.pth'"):
        rtrain.predict(trained.path, tmp_path / "more.csv", [words[0], "dataset.pth=other.parquet"])


def test_columns_besides_the_features_may_have_other_names_and_types(trained, tmp_path):
    rows = 30 * ["01,1.0,1.0,red"] + 30 * ["02,-1.0,-1.0,blue"] + ["A3,1.0,1.0,red"]
    (tmp_path / "later.csv").write_text("\n".join(["number,a,b,colour", *rows]) + "\n")
    words = ["dataset=csv", f"dataset.path={tmp_path}/later.csv"]
    assert rtrain.evaluate(trained.path, [*words, "dataset.label=colour"])["accuracy"] == 1
    with pytest.raises(ConfigError, match="names 'kind', which is not a column"):
        rtrain.evaluate(trained.path, words)
    rtrain.predict(trained.path, tmp_path / "out.parquet", [*words, "dataset.dtypes={number: string}"])
    assert parquet.read_table(tmp_path / "out.parquet")["number"][-2:].to_pylist() == ["02", "A3"]


@pytest.mark.parametrize(
    "word",
    ["dataset.features=[b]", "dataset.normalize=false", "dataset.on_missing=keep", "dataset.memory=stream"],
)
def test_words_that_would_prepare_rows_another_way_are_refused(trained, new_rows, tmp_path, word):
    with pytest.raises(ConfigError, match="has no effect: rows are prepared as in training"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={new_rows}", word])
    with pytest.raises(ConfigError, match="reads 'a' as string, but the model reads it as in training"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={new_rows}", "dataset.dtypes={a: string}"])


def test_evaluating_gives_the_metrics_of_the_run_and_of_other_rows(trained):
    found = rtrain.evaluate(trained.path)
    assert found["num_rows"] == 60
    assert found["accuracy"] == pytest.approx(trained.metrics["test/accuracy"])
    assert found["loss"] == pytest.approx(trained.metrics["test/loss"], rel=1e-4)
    path = trained.manifest.config["dataset"]["path"]
    assert rtrain.evaluate(trained.path, [f"dataset.path={path}"])["num_rows"] == 300
    assert rtrain.evaluate(trained.path, split="train")["num_rows"] == 240


def test_rows_of_training_are_not_measured_unless_they_are_asked_for(trained):
    assert rtrain.evaluate(trained.path, ["scaling.use_gpu=false"]) == rtrain.evaluate(trained.path)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("resident", ["dataset.split.by_time=day"]),
        ("stream", ["dataset.split.by_time=day"]),
        ("stream", ["dataset.split.by_hash=id"]),
        ("stream", ["dataset.split.by_group=shop"]),
        ("resident", ["dataset.split.by_column={column: shop, test: [1, 2]}"]),
        ("resident", ["dataset.split.test=0.3", "dataset.seed=4", "dataset.sample=0.8"]),
    ],
)
def test_a_checkpoint_finds_the_test_rows_of_its_run_again(tmp_path, words, memory):
    row = np.arange(200)
    columns = {"id": row, "day": row * 7 % 200, "shop": row % 9, "a": row / 9, "b": row % 5, "y": row % 13 + row / 7}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=50)
    more = [f"dataset.path={tmp_path}/rows.parquet", "dataset=parquet", "dataset.label=y", "dataset.features=[a,b]"]
    more += [f"dataset.memory={memory}", "num_workers=0", f"run.root_dir={tmp_path}/runs", "trainer.num_boost_round=3"]
    run = rtrain.fit("xgboost", [*more, *words])
    found = rtrain.evaluate(run.path)
    assert found["num_rows"] == run.manifest.dataset["num_rows"]["test"]
    assert found["rmse"] == pytest.approx(run.metrics["test/rmse"], rel=1e-5)


@pytest.mark.parametrize(
    "word", ["dataset.limit=100", "dataset.sample=0.5", "dataset.seed=7", "dataset.split.test=0.5"]
)
def test_words_that_would_mix_rows_of_training_into_the_test_are_refused(trained, word):
    for split in (None, "test"):
        with pytest.raises(ConfigError, match=f"{word} makes different splits than in training"):
            rtrain.evaluate(trained.path, [word], split=split)
    path = trained.manifest.config["dataset"]["path"]
    with pytest.raises(ConfigError, match=f"{word} has no effect: all rows are read"):
        rtrain.evaluate(trained.path, [f"dataset.path={path}", word])
    rtrain.evaluate(trained.path, [f"dataset.path={path}", word], split="test")


@pytest.mark.parametrize("word", ["dataset.ids=[a]", "dataset.max_unseen=0.5"])
def test_words_about_raw_rows_are_refused_for_a_split_which_has_none(trained, tmp_path, word):
    with pytest.raises(ConfigError, match=re.escape(f"{word} has no effect: a split is decoded as in training")):
        rtrain.predict(trained.path, tmp_path / "out.csv", [word], split="test")
    with pytest.raises(ConfigError, match=re.escape(f"{word} has no effect")):
        rtrain.evaluate(trained.path, [word])


def test_scores_to_start_from_count_for_new_rows_too(tmp_path):
    rng = np.random.default_rng(0)
    a, start = rng.random(200), rng.uniform(-3, 3, 200)
    csv.write_csv(pa.table({"a": a, "start": start, "y": 2 * start + a}), tmp_path / "rows.csv")
    words = ["dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y", "dataset.base_margin=[start]"]
    run = rtrain.fit("xgboost", [*words, "num_workers=0", "trainer.num_boost_round=3", f"run.root_dir={tmp_path}/runs"])
    assert rtrain.evaluate(run.path)["rmse"] == pytest.approx(run.metrics["test/rmse"], rel=1e-4)
    csv.write_csv(pa.table({"a": [0.5, 0.5], "start": [0.0, 10.0]}), tmp_path / "new.csv")
    rtrain.predict(run.path, tmp_path / "out.parquet", [f"dataset.path={tmp_path}/new.csv"])
    low, high = parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist()
    assert high - low == pytest.approx(10, rel=1e-4)
    csv.write_csv(pa.table({"a": [0.5]}), tmp_path / "none.csv")
    with pytest.raises(ConfigError, match=r"none\.csv: dataset\.base_margin names 'start', which is not a column"):
        rtrain.predict(run.path, tmp_path / "none.parquet", [f"dataset.path={tmp_path}/none.csv"])


def test_an_output_that_is_there_is_kept_unless_forced(trained, new_rows, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={new_rows}"])
    assert (tmp_path / "out.csv").read_text() == "mine"
    rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={new_rows}"], force=True)
    assert (tmp_path / "out.csv").read_text() != "mine"


def test_a_folder_gets_parts_and_is_replaced_only_if_it_holds_nothing_else(trained, new_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.prediction.output.PART_ROWS", 100)
    monkeypatch.setattr("rtrain.prediction.scoring.MAX_BATCH_ROWS", 70)
    path = f"dataset.path={trained.manifest.config['dataset']['path']}"
    assert rtrain.predict(trained.path, f"{tmp_path}/out/", [path]) == 300
    parts = sorted((tmp_path / "out").iterdir())
    assert [part.name for part in parts] == [f"part-0000{number}.parquet" for number in range(4)]
    rtrain.predict(trained.path, tmp_path / "whole.parquet", [path])
    found = pa.concat_tables([parquet.read_table(part) for part in parts])
    assert found.equals(parquet.read_table(tmp_path / "whole.parquet"))
    with pytest.raises(ConfigError, match="already contains predictions"):
        rtrain.predict(trained.path, tmp_path / "out", [f"dataset.path={new_rows}"])
    rtrain.predict(trained.path, tmp_path / "out", [f"dataset.path={new_rows}"], force=True)
    assert parquet.read_table(tmp_path / "out").num_rows == 3
    (tmp_path / "out" / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match=r"contains files that are not predictions: mine\.txt"):
        rtrain.predict(trained.path, tmp_path / "out", [f"dataset.path={new_rows}"], force=True)


def test_a_column_that_the_output_would_hide_is_refused(trained, tmp_path):
    (tmp_path / "again.csv").write_text("id,a,b,prediction\nx,1,2,red\n")
    with pytest.raises(ConfigError, match=r"'prediction', which the output needs(.|\n)*'dataset\.ids=\[id\]'"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={tmp_path}/again.csv"])


def test_columns_that_are_empty_at_first_are_text(trained, tmp_path):
    (tmp_path / "1.csv").write_text("a,b,note\n1,2,\n")
    (tmp_path / "2.csv").write_text("a,b,note\n1,2,late\n")
    rtrain.predict(trained.path, tmp_path / "out.parquet", [f"dataset.path={tmp_path}/*.csv"])
    assert parquet.read_table(tmp_path / "out.parquet")["note"].to_pylist() == [None, "late"]
    (tmp_path / "1.csv").write_text("a,b,note\n1,2,7\n")
    with pytest.raises(PredictionError, match=r"columns differ between the predicted files"):
        rtrain.predict(trained.path, tmp_path / "more.parquet", [f"dataset.path={tmp_path}/*.csv"])


def test_a_model_that_fails_is_told_in_a_line(trained, new_rows, tmp_path, monkeypatch, capsys):
    def fail(self, x):
        raise ArithmeticError("too hot")

    monkeypatch.setattr("rtrain.trainers.lightgbm.predictor.Predictor.predict", fail)
    assert command(["predict", str(trained.path), f"dataset.path={new_rows}", "-o", f"{tmp_path}/out.csv"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ArithmeticError: too hot (in the rows after row 0)\n  --> ")
    assert '| raise ArithmeticError("too hot")' in error
    assert "Traceback" not in error


@pytest.mark.parametrize("place", ["run", "checkpoint"])
@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_in_python_an_error_has_the_run_that_was_asked_and_is_short(trained, tmp_path, monkeypatch, verb, place):
    def fail(self, x):
        raise ArithmeticError("too hot")

    monkeypatch.setattr("rtrain.trainers.lightgbm.predictor.Predictor.predict", fail)
    where = trained.path if place == "run" else trained.best_checkpoint
    with pytest.raises(PredictionError) as caught:
        rtrain.evaluate(where) if verb == "evaluate" else rtrain.predict(where, tmp_path / "out.csv", split="test")
    error = caught.value
    assert error.run == trained
    assert error.run_dir == trained.path
    assert "too hot" in str(error.cause)
    assert error._render_traceback_()[0] == "PredictionError: ArithmeticError: too hot (in the rows after row 0)"
    assert len(error._render_traceback_()) <= 15
    assert len("".join(traceback.format_exception(error)).splitlines()) <= 15


def test_in_python_an_error_of_a_folder_that_is_no_run_has_none(tmp_path):
    with pytest.raises(RtrainError) as caught:
        rtrain.evaluate(tmp_path)
    assert (caught.value.run, caught.value.run_dir) == (None, None)


@pytest.mark.parametrize(("values", "row"), [("2 x", 2), ("x 2", 1), ("true Total", 2), ("1 False Total", 3)])
def test_a_failed_prediction_names_the_value_and_leaves_no_file(trained, tmp_path, values, row):
    (tmp_path / "bad.csv").write_text("a,b\n" + "".join(f"1,{value}\n" for value in values.split()))
    with pytest.raises(ConfigError, match=rf"bad.csv: feature 'b' is not numeric: row {row} contains"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={tmp_path}/bad.csv"])
    assert not list(tmp_path.glob("*out.csv*"))


def test_a_missing_feature_is_named_with_the_nearest_column(trained, tmp_path):
    (tmp_path / "bad.csv").write_text("a,bb\n1,2\n")
    with pytest.raises(ConfigError, match=r"bad.csv: .*no column 'b', which the model takes.\ndid you mean: bb"):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={tmp_path}/bad.csv"])


def test_rows_without_labels_cannot_be_evaluated(trained, new_rows):
    with pytest.raises(ConfigError, match=r"new\.csv: dataset\.label names 'kind', which is not a column"):
        rtrain.evaluate(trained.path, [f"dataset.path={new_rows}"])


def test_what_is_typed_wrong_is_told_with_the_command(trained, tmp_path, capsys):
    assert command(["predict", str(trained.path), "dataset.pth=x.csv", "-o", str(tmp_path / "out.csv")]) == 2
    error = capsys.readouterr().err
    assert f"rtrain predict {trained.path} dataset.path=x.csv" in error
    assert command(["predict", str(trained.path), "trainer.num_threads=1", "-o", str(tmp_path / "out.csv")]) == 2
    assert "use only dataset.*, scaling.* and cluster.*" in capsys.readouterr().err
    assert command(["predict", str(trained.path), "new.csv", "-o", str(tmp_path / "out.csv")]) == 2
    assert "dataset.path: new.csv does not exist" in capsys.readouterr().err


def test_an_evaluation_is_a_table_or_json_that_says_what_was_measured(trained, tmp_path, capsys):
    assert command(["evaluate", str(trained.path), "-o", str(tmp_path / "scores.json")]) == 0
    table = capsys.readouterr().out
    assert "rows.csv, split test\nnum_rows    60\n" in table
    written = json.loads((tmp_path / "scores.json").read_text())
    assert f"accuracy    {written['metrics']['accuracy']:.6g}\n" in table
    assert (written["split"], written["num_rows"], written["dataset"]["type"]) == ("test", 60, "csv")
    assert written["checkpoint"] == str(trained.best_checkpoint)
    assert command(["evaluate", str(trained.path), "--json", "--checkpoint", "latest"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint"] == str(trained.checkpoints[-1])


def test_a_prediction_says_which_checkpoint_it_is_by(trained, new_rows, tmp_path, capsys):
    assert command(["predict", str(trained.path), f"dataset.path={new_rows}", "-o", f"{tmp_path}/out.csv"]) == 0
    assert f"predicted 3 rows by {trained.best_checkpoint} -> " in capsys.readouterr().out


def test_a_checkpoint_that_is_not_there_is_told_with_those_that_are(trained, tmp_path):
    with pytest.raises(CheckpointError, match=r"has no checkpoint 'epoch-1'.\navailable: best, latest, epoch-"):
        rtrain.evaluate(trained.path, checkpoint="epoch-1")
    with pytest.raises(CheckpointError, match="does not exist"):
        rtrain.evaluate(tmp_path / "nowhere")


def test_a_copy_that_broke_off_is_told_before_the_framework_reads_it(trained, tmp_path):
    copied = shutil.copytree(trained.best_checkpoint, tmp_path / "copied")
    with next(copied.glob("model.*")).open("r+b") as file:
        file.truncate(100)
    with pytest.raises(CheckpointError, match=r"copied/model\.\w+ is damaged: 100 bytes instead of [1-9]"):
        rtrain.evaluate(copied)


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_raw_rows_go_through_the_preprocessors_of_the_checkpoint(tmp_path, memory):
    rng = np.random.default_rng(1)
    for name, scale in (("train", 1.0), ("test", 5.0)):
        size = rng.normal(size=300) * scale
        colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, 300)]
        y = size + (colour == "red")
        size[::10] = np.nan
        csv.write_csv(pa.table({"size": size, "colour": colour, "y": y}), tmp_path / f"{name}.csv")
    steps = (
        "{type: SimpleImputer, columns: [size]}, {type: MinMaxScaler, columns: [size]}, "
        "{type: OneHotEncoder, columns: [colour]}"
    )
    paths = f"dataset.path={{train: {tmp_path}/train.csv, test: {tmp_path}/test.csv}}"
    words = [paths, "dataset=csv", "dataset.label=y", f"dataset.preprocessors=[{steps}]", f"dataset.memory={memory}"]
    run = rtrain.fit("lightgbm", [*words, "num_workers=0", f"run.root_dir={tmp_path}/runs"])
    assert run.manifest.dataset["feature_names"] == ["size", "colour=blue", "colour=green", "colour=red"]
    assert [step["type"] for step in run.manifest.config["dataset"]["preprocessors"]] == [
        "SimpleImputer",
        "MinMaxScaler",
        "OneHotEncoder",
    ]
    found = rtrain.evaluate(run.path, [f"dataset.path={tmp_path}/test.csv"])
    assert found["num_rows"] == 300
    assert found["mse"] == pytest.approx(run.metrics["test/l2"], rel=1e-5)
    assert rtrain.evaluate(run.path)["mse"] == pytest.approx(found["mse"])
    swapped = f"dataset.path={{train: {tmp_path}/test.csv, test: {tmp_path}/train.csv}}"
    with pytest.raises(ConfigError, match="prepared from its own train rows"):
        rtrain.evaluate(run.path, [swapped], split="test")
    about = json.loads((run.best_checkpoint / "about.json").read_text())
    about["encoding"]["preprocessing"]["steps"][0]["type"] = "Chain"
    replace_file(run.best_checkpoint, "about.json", json.dumps(about).encode())
    with pytest.raises(CheckpointError, match="how rows were prepared"):
        rtrain.evaluate(run.path, [f"dataset.path={tmp_path}/test.csv"])


class Fixed:
    """A model that always predicts the same."""

    def __init__(self, scores, **more):
        self._scores = scores
        vars(self).update(more)

    def predict(self, x):
        return self._scores


def known(task, num_classes):
    return DatasetInfo(
        **{
            "name": "x",
            "task": task,
            "input_shape": (),
            "num_classes": num_classes,
            "class_names": ("O", "X")[:num_classes],
        },
        **{"num_rows": {}, "fingerprint": "", "memory": "", "memory_reason": ""},
    )


def test_the_tag_of_a_word_is_at_the_place_of_the_word():
    o, x, none = (0.9, 0.1), (0.2, 0.8), (np.nan, np.nan)
    words = [["", "Anna", "\u200b", "Bob"], ["Bob", "goes", "on and on"], [], ["", ""]]
    scores = np.array([[none, x, none, x], [x, o, none, none], [none] * 4, [none] * 4])
    rows = RawChunk(np.array([*words, None], object)[:4], None, {}, None, None)
    found = prediction_table(Fixed(scores), known("token-classification", 2), rows)
    assert found["prediction"].to_pylist() == [[None, "X", None, "X"], ["X", "O"], [], []]


@pytest.mark.parametrize(
    ("task", "num_classes", "shape", "more"),
    [
        ("classification", 2, (3, 4), {}),
        ("classification", 2, (3,), {}),
        ("classification", 2, (3, 2), {"quantiles": (0.1, 0.5)}),
        ("regression", None, (3, 2), {}),
        ("regression", None, (3,), {"quantiles": (0.1, 0.5)}),
        ("token-classification", 2, (3, 2), {}),
    ],
)
def test_a_model_whose_numbers_are_not_of_the_task_is_refused(task, num_classes, shape, more):
    rows = RawChunk(np.zeros((3, 1)), None, {}, None, None)
    with pytest.raises(CheckpointError):
        prediction_table(Fixed(np.full(shape, 0.5), **more), known(task, num_classes), rows)
