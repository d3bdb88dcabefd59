"""A run is trained again, and compared."""

from __future__ import annotations

import math
import subprocess

import pytest
from made_runs import make_run

from rtrain.cli.app import run as rtrain_command
from rtrain.runs.manifest import read_manifest
from rtrain.runs.origin import read_packages
from rtrain.runs.run import Run
from rtrain.training.reproduction import compare_runs


def runs(tmp_path, before, after):
    pair = (before, "000a"), (after, "000b")
    return [Run.load(make_run(tmp_path, short_id=short, **facts)) for facts, short in pair]


def test_what_differs_is_named(tmp_path):
    before = {"versions": {"torch": "2.9"}, "git": {"commit": "a"}, "dataset": {"fingerprint": "x"}}
    after = {"versions": {"torch": "2.10"}, "git": {"commit": "a"}, "dataset": {"fingerprint": "y"}}
    found = compare_runs(*runs(tmp_path, before, after))
    assert found.code == {"torch": ("2.9", "2.10")}
    assert found.data == {"fingerprint": ("x", "y")}
    assert found.differing == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1.0}, {"a": 1.0}, {}),
        ({"a": None}, {"a": None}, {}),
        ({"a": 1.0}, {"a": 0.5}, {"a": 0.5}),
        ({"a": 1.0}, {"a": None}, {"a": math.inf}),
        ({"a": 1.0}, {"b": 1.0}, {"a": math.inf, "b": math.inf}),
        ({"train/rows_per_second": 1.0}, {"train/rows_per_second": 2.0}, {}),
    ],
)
def test_metrics_are_equal_or_how_different(before, after, expected, tmp_path):
    assert compare_runs(*runs(tmp_path, {"metrics": before}, {"metrics": after})).differing == expected


def git(*words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def test_a_run_is_reproduced_to_the_last_digit_and_keeps_what_it_started_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text("size: 1\n")
    git("init", "-q")
    git("add", "own.yaml")
    git("commit", "-qm", "first")
    (tmp_path / "own.yaml").write_text("size: 2\napi_key: S3cret-1234\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert rtrain_command(["fit", "mlp", "num_workers=0", "epochs=1", "trainer.optimizer.lr=0.01"]) == 0
    first = next((tmp_path / "runs" / "mlp").iterdir())
    diff = (first / "code.diff").read_text()
    assert "+size: 2\n+api_key: ***\n" in diff
    assert "S3cret" not in diff
    assert read_packages(first)["torch"] == read_manifest(first).versions["torch"]
    capsys.readouterr()
    assert rtrain_command(["runs", "reproduce", "last"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"equal        all metrics of {first.relative_to(tmp_path)}"
    assert len(list((tmp_path / "runs" / "mlp").iterdir())) == 2
    assert rtrain_command(["runs", "reproduce", first.name, "lr=0.5"]) == 1
    assert "not equal    val/loss was " in capsys.readouterr().out
