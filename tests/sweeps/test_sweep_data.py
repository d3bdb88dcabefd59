"""A sweep over datasets holds those that trials to come need, as far as they fit into memory together."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sweep_results import only_sweep

import rtrain
from rtrain.cli.app import run
from rtrain.runs.observer import SilentObserver
from rtrain.sweeps import data as sweep_data
from rtrain.sweeps.data import Data, num_bytes
from rtrain.sweeps.record.sweep_record import read_sweep
from rtrain.testing.small_data import in_memory, small_dataset, streamed

SIZE = 1_000


def trial(name):
    return SimpleNamespace(resolved={"dataset": {"path": name}})


@pytest.fixture
def read(monkeypatch):
    """Return the names of what has been read, of datasets of ``SIZE`` bytes each, with memory for two and a half."""
    names = []

    def load(composed, observer, starting):
        names.append(composed.resolved["dataset"]["path"])
        columns = {"x": np.zeros((1, SIZE - 4), "uint8"), "y": np.zeros(1, "float32")}
        return in_memory({"train": columns}, "regression")

    monkeypatch.setattr(sweep_data, "load_dataset", load)
    held = SimpleNamespace(data=None)

    def free():
        return 2.5 * SIZE / sweep_data.SHARE - sum(held.data._sizes.values())

    monkeypatch.setattr(sweep_data, "free_bytes", free)
    held.data = Data(SilentObserver(), SimpleNamespace(starting=None))
    return held.data, names


def test_what_is_held_is_read_once(read):
    data, names = read
    assert data.of(trial("a")) is data.of(trial("a"))
    assert names == ["a"]


def test_only_as_many_as_fit_are_read_before_the_first_trial(read):
    data, names = read
    for name in ("a", "b", "a", "c", "d"):
        if data.expect(trial(name)):
            data.of(trial(name))
    assert names == ["a", "b"]


def test_what_was_not_used_for_the_longest_time_goes_first(read):
    data, names = read
    for name in ("a", "b", "a", "c"):
        data.of(trial(name))
    assert set(data._read) == {next(key for key in data._read if name in key) for name in ("a", "c")}
    data.of(trial("a"))
    data.of(trial("b"))
    assert names == ["a", "b", "c", "b"]


def test_data_goes_with_the_last_trial_that_needs_it(read):
    data, names = read
    for name in ("a", "a", "b"):
        data.expect(trial(name))
        data.of(trial(name))
    data.done(trial("a"))
    assert len(data._read) == 2
    data.done(trial("a"))
    assert len(data._read) == 1
    data.of(trial("a"))
    assert names == ["a", "b", "a"], "what is needed after all is read again"


def test_rows_in_memory_count():
    dataset = small_dataset(num_rows=(10, 5), shape=(3,))
    assert num_bytes(dataset) == 15 * (3 * 4 + 8)
    assert num_bytes(small_dataset(split=streamed)) == 0
    assert num_bytes(None) == 0


def test_a_sweep_lets_go_of_each_dataset_when_its_trials_are_over(monkeypatch, tmp_path):
    alive, most, load = [], [], sweep_data.load_dataset

    def watched(*args):
        gc.collect()
        most.append(sum(one() is not None for one in alive))
        dataset = load(*args)
        alive.append(weakref.ref(dataset))
        return dataset

    monkeypatch.setattr(sweep_data, "load_dataset", watched)
    monkeypatch.setattr(sweep_data, "SHARE", 0.0)
    words = ["num_workers=0", "trainer.num_boost_round=1", "dataset=synthetic", "dataset.num_rows=40,50,60"]
    folder = rtrain.sweep("xgboost", [*words, f"run.root_dir={tmp_path}"])
    assert len(list(folder.glob("0*/manifest.json"))) == 3
    assert most == [0, 0, 0], "one was held while the next one was read"


def test_data_that_is_missing_fails_its_trial_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(sweep_data, "SHARE", 0.0)
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    words = ["num_workers=0", "trainer.num_boost_round=1", "dataset=csv", "dataset.label=y", "sweep.name=s"]
    paths = f"dataset.path={tmp_path}/a.csv,{tmp_path}/gone.csv"
    folder = rtrain.sweep("xgboost", [*words, paths, f"run.root_dir={tmp_path}/runs"])
    assert [one["status"] for one in read_sweep(folder)["trials"]] == ["succeeded", "failed"]


def write_rows(shift):
    x = np.arange(80) + shift
    Path("rows.csv").write_text("a,y\n" + "".join(f"{value},{value // 3 % 2}\n" for value in x))
    Path("own_rows.py").write_text(
        f"import pandas as pd {'#' * shift}\n\n\ndef load():\n"  # of another size: Python compiles it again
        f"    return pd.DataFrame({{'a': range({shift}, {shift} + 80), 'y': [n // 3 % 2 for n in range(80)]}})\n"
    )
    sys.modules.pop("own_rows", None)


ROWS = {
    "file": ["dataset=csv", "dataset.path=rows.csv", "dataset.label=y"],
    "stream": ["dataset=csv", "dataset.path=rows.csv", "dataset.label=y", "dataset.memory=stream"],
    "function": ["dataset=python", "dataset.function=own_rows:load", "dataset.label=y"],
}
SEARCHES = {
    "grid": (["seed=1,2"], ["seed=1,2,3"]),
    "random": (["sweep=random", "sweep.num_trials=2", "seed=range(9)"], ["sweep.num_trials=3"]),
    "optuna": (
        *(["sweep=optuna", "sweep.metric=test/logloss", "sweep.num_trials=2", "seed=range(9)"], ["sweep.num_trials=3"]),
    ),
}


@pytest.mark.parametrize(
    ("kind", "search"),
    [("file", "grid"), ("stream", "grid"), ("function", "grid"), ("file", "random"), ("file", "optuna")],
)
def test_trials_that_are_added_train_on_the_rows_of_those_before(tmp_path, monkeypatch, capsys, kind, search):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text("")
    write_rows(0)
    words = ["fit", "xgboost", *ROWS[kind], "num_workers=0", "trainer.num_boost_round=1", "trainer.num_threads=1"]
    first, more = SEARCHES[search]
    assert run([*words, *first, "--multirun"]) == 0
    folder = only_sweep(tmp_path / "runs")
    write_rows(1)
    again = [
        *words,
        *[word for word in first if word.partition("=")[0] != more[0].partition("=")[0]],
        *more,
        "--multirun",
    ]
    assert run([*words, *first, "--multirun"]) == 0, "nothing is left to train"
    before = (folder / "sweep.json").read_bytes()
    capsys.readouterr()
    assert run(again) == 2
    told = capsys.readouterr().err
    assert "have changed since" in told
    assert "run.resume_data=changed" in told
    assert (folder / "sweep.json").read_bytes() == before
    assert run([*again, "run.resume_data=changed"]) == 0
    assert "(run.resume_data=changed)" in capsys.readouterr().err
    assert len(read_sweep(only_sweep(tmp_path / "runs"))["trials"]) == 3
    last = {"grid": "seed=1,2,3,4"}.get(search, "sweep.num_trials=4")
    assert run([*(last if word == more[0] else word for word in again)]) == 0, "the rows are those of the newest trial"
    assert run([*again, "sweep.name=another"]) == 0
