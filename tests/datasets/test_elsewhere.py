"""Data that is looked for from another folder than the one in which the command was meant: the error names that one."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from rtrain.cli.app import run
from rtrain.datasets.missing.elsewhere import folder_named
from rtrain.errors import DatasetError, MissingDataError

CONFIG = """\
defaults: [{{trainer: lightgbm}}, {{dataset: csv}}]
dataset: {{path: {path}, label: y}}
trainer: {{num_boost_round: 2}}
num_workers: 0
"""
PLACES = {
    "one file": "rows/train.csv",
    "a name with glob signs": "'rows/t[r].csv'",
    "a glob": "'rows/tr*.csv'",
    "a folder": "rows",
    "files of splits": "{train: rows/train.csv, val: rows/train.csv}",
}
COMMANDS = {
    "evaluate": ("evaluate", "{run}"),
    "evaluate --split": ("evaluate", "{run}", "--split", "train"),
    "predict": ("predict", "{run}", "-o", "out.csv"),
    "resume": ("resume", "{run}", "trainer.num_boost_round=3"),
    "fit": ("fit", "{home}/configs/a.yaml"),
    "check": ("check", "{home}/configs/a.yaml"),
    "sweep": ("fit", "{home}/configs/a.yaml", "--multirun", "seed=1,2"),
}


@pytest.fixture(params=list(PLACES))
def home(request, tmp_path, monkeypatch, capsys):
    """A folder where a run was trained; the current one is another."""
    home, other = tmp_path / "my home", tmp_path / "other"
    for folder in (home / "rows", home / "configs", other):
        folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    name = "t[r].csv" if "t[r]" in PLACES[request.param] else "train.csv"
    csv.write_csv(pa.table({"a": draw.normal(size=60), "y": draw.normal(size=60)}), home / "rows" / name)
    (home / "configs/a.yaml").write_text(CONFIG.format(path=PLACES[request.param]))
    monkeypatch.chdir(home)
    assert run(["fit", "configs/a.yaml"]) == 0, capsys.readouterr().err
    monkeypatch.chdir(other)
    capsys.readouterr()
    return home


def test_every_command_names_the_folder_that_has_the_data(home, monkeypatch, capsys):
    run_dir = next((home / "runs/a").iterdir())
    for name, words in COMMANDS.items():
        words = [one.format(run=run_dir, home=home) for one in words]
        monkeypatch.chdir(home.parent / "other")
        assert run(words) != 0, name
        told = capsys.readouterr().err
        assert f"It is in {home}," in told, (name, told)
        assert f"cd {shlex.quote(str(home))}" in told, name
        monkeypatch.chdir(home)
        assert run(words) == 0, (name, capsys.readouterr().err)


@pytest.mark.parametrize(
    "place", ["", " ", "nowhere.csv", "/rows", "~/rows", "s3://a/rows", "**/*.csv", "x" * 5000, "\0"]
)
def test_what_is_nowhere_stays_so(tmp_path, monkeypatch, place):
    (tmp_path / "here").mkdir()
    (tmp_path / "rows.csv").touch()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(DatasetError) as caught, folder_named(None, tmp_path / "a/b"):
        raise MissingDataError("wrong", "a hint", place)
    assert caught.value.hint == "a hint"


def test_other_errors_stay_as_they_are_whatever_the_project_has(home, monkeypatch, capsys):
    (home / "other").mkdir()
    for name in ("csv", "y", "price"):
        (home / name).mkdir()
    (home / "other/x.csv").write_text("price,y\n1,2\n")
    monkeypatch.chdir(home / "other")
    assert run(["check", "../configs/a.yaml", "dataset.path=x.csv", "dataset.label=prise"]) != 0
    told = capsys.readouterr().err
    assert "price" in told
    assert "It is in" not in told


def test_the_folder_of_the_project_comes_first_and_roots_are_none(tmp_path, monkeypatch):
    for name in ("here", "project/deep", "above/deep"):
        Path(tmp_path, name).mkdir(parents=True)
    for name in ("project", "above"):
        (tmp_path / name / "rows.csv").touch()
    monkeypatch.chdir(tmp_path / "here")
    for root, expected in ((tmp_path / "project", "project"), (None, "above")):
        with pytest.raises(DatasetError) as caught, folder_named(root, tmp_path / "above/deep/x.yaml"):
            raise MissingDataError("wrong", None, "rows.csv")
        assert f"It is in {tmp_path / expected}," in str(caught.value)
    with pytest.raises(DatasetError) as caught, folder_named(None, tmp_path / "x"):
        raise MissingDataError("wrong", None, "tmp")
    assert caught.value.hint is None
