"""Categories that training never saw are counted for each column, and too many of them are an error."""

import csv

import numpy as np
import pytest

import rtrain
from rtrain.cli.app import run as cli
from rtrain.errors import DatasetError

RNG = np.random.default_rng(0)
JOBS, TOWNS = ("Private", "State", "Self"), ("Aachen", "Bonn")
ENCODE = "dataset.preprocessors=[{type: OneHotEncoder, columns: [job, town]}]"
FOREST = {"_target_": "sklearn.ensemble.HistGradientBoostingRegressor", "max_iter": 2}
TRAINERS = {
    "xgboost": ["xgboost", "trainer.num_boost_round=2"],
    "lightgbm": ["lightgbm", "trainer.num_boost_round=2"],
    "sklearn": ["sklearn", f"trainer.estimator={FOREST}".replace("'", "")],
    "torch": ["mlp", "trainer.max_epochs=1", "trainer.batch_size=64", ENCODE],
}


def write(path, rows, **changes):
    """Write rows of two categories and a number; ``changes`` are functions of their values."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "town", "age", "pay"])
        for number in range(rows):
            row = {"job": JOBS[number % 3], "town": TOWNS[number % 2], "age": number % 50, "pay": number % 7}
            writer.writerow([changes.get(name, lambda value, _: value)(value, number) for name, value in row.items()])
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    path = write(folder / "train.csv", 200)
    made = {}

    def run_of(name):
        if name not in made:
            config, *words = TRAINERS[name]
            data = ["dataset=csv", f"dataset.path={path}", "dataset.label=pay", "dataset.task=regression"]
            made[name] = rtrain.fit(config, ["num_workers=0", *data, *words, f"run.root_dir={folder}"])
        return made[name]

    return run_of


def capitals(value, _):
    return value.upper()


def new_in(every):
    return lambda value, number: "elsewhere" if number % every == 0 else value


@pytest.mark.parametrize("name", TRAINERS)
def test_a_category_with_values_that_training_never_saw_is_refused_and_leaves_no_output(name, runs, tmp_path, capsys):
    new, out = write(tmp_path / "new.csv", 60, job=capitals, town=new_in(20)), tmp_path / "out.csv"
    run = str(runs(name).path)
    for command in (["predict", run, f"dataset.path={new}", "-o", str(out)], ["evaluate", run, f"dataset.path={new}"]):
        assert cli(command) == 2
        told = capsys.readouterr().err
        assert "'job'" in told
        assert "60 of 60" in told
        assert "dataset.max_unseen" in told
    assert not out.exists()


@pytest.mark.parametrize("name", TRAINERS)
def test_some_of_them_are_reported_by_column_and_count_as_missing(name, runs, tmp_path, caplog):
    new, empty = write(tmp_path / "new.csv", 60, town=new_in(20)), tmp_path / "out.csv"
    assert rtrain.predict(runs(name).path, empty, [f"dataset.path={new}"]) == 60
    said = [record.getMessage() for record in caplog.records if "never saw" in record.getMessage()]
    assert len(said) == 1
    assert "'town'" in said[0]
    assert "3 of 60" in said[0]


def test_the_largest_share_is_a_key(runs, tmp_path):
    new = write(tmp_path / "new.csv", 60, job=capitals)
    words = [f"dataset.path={new}", "dataset.max_unseen=1"]
    assert rtrain.predict(runs("xgboost").path, tmp_path / "a.csv", words) == 60
    assert rtrain.evaluate(runs("xgboost").path, words)["num_rows"] == 60
    few = write(tmp_path / "few.csv", 60, town=new_in(20))
    with pytest.raises(DatasetError):
        rtrain.predict(runs("xgboost").path, tmp_path / "b.csv", [f"dataset.path={few}", "dataset.max_unseen=0"])


def test_rows_of_training_and_missing_values_are_none_of_them(runs, tmp_path, caplog):
    new = write(tmp_path / "new.csv", 60, job=lambda value, number: "" if number % 2 else value)
    for path in (new, write(tmp_path / "same.csv", 200)):
        rtrain.predict(runs("xgboost").path, tmp_path / f"{path.stem}.parquet", [f"dataset.path={path}"])
    assert not [record for record in caplog.records if "never saw" in record.getMessage()]


@pytest.mark.parametrize(
    ("trainer", "num_rows"), [(name, 60) for name in TRAINERS if name != "torch"] + [("xgboost", 1)]
)
def test_a_column_without_any_value_is_reported_unless_there_is_one_row(trainer, num_rows, runs, tmp_path, caplog):
    new = write(tmp_path / "new.csv", num_rows, job=lambda value, number: "")
    assert rtrain.predict(runs(trainer).path, tmp_path / "out.csv", [f"dataset.path={new}"]) == num_rows
    said = [record.getMessage() for record in caplog.records if "missing" in record.getMessage()]
    assert said == (["feature 'job': the value is missing in all 60 rows"] if num_rows > 1 else [])


def test_a_category_that_names_rows_may_have_new_values_only(tmp_path, caplog):
    path = write(tmp_path / "train.csv", 120, job=lambda value, number: f"name {number}")
    words = ["num_workers=0", "dataset=csv", f"dataset.path={path}", "dataset.label=pay", "dataset.task=regression"]
    run = rtrain.fit("xgboost", [*words, "trainer.num_boost_round=1", f"run.root_dir={tmp_path}/runs"])
    new = write(tmp_path / "new.csv", 20, job=lambda value, number: f"other {number}")
    assert rtrain.predict(run.path, tmp_path / "out.csv", [f"dataset.path={new}"]) == 20
    assert [record for record in caplog.records if "20 of 20" in record.getMessage()]
