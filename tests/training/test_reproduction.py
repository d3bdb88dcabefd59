"""A run is trained again, and compared."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import NOON, make_run

from rtrain.cli.app import run as rtrain_command
from rtrain.runs.events import Event, event_line
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


def test_of_a_run_that_ended_early_values_of_the_same_steps_are_compared(tmp_path):
    early, whole = {"losses": (0.9, 0.5)}, {"losses": (0.9, 0.5, 0.1)}
    before, after = runs(tmp_path, early, whole)
    found = compare_runs(before, after)
    assert found.went_on
    assert (found.metrics, found.differing, found.not_compared) == ({"val/loss": (0.5, 0.5)}, {}, {})
    back = compare_runs(after, before)
    assert not back.went_on
    assert back.differing == {"val/loss": pytest.approx(0.8)}, "it ends earlier than the run"


def test_values_of_steps_that_the_repetition_does_not_report_are_named(tmp_path):
    before, after = runs(tmp_path, {"losses": (0.9,)}, {"losses": (0.9, 0.5)})
    with (before.path / "events.jsonl").open("a") as file:
        file.write(event_line(Event(step=7, epoch=0, time=NOON.isoformat(), metrics={"val/accuracy": 0.5})))
    found = compare_runs(before, after)
    assert (found.differing, found.not_compared) == ({}, {"val/accuracy": 7})


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(*words):
    assert rtrain_command(["fit", *words, "num_workers=0"]) == 0
    (run,) = Path("runs").glob("*/*")
    return run


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("trainer.num_boost_rouns=3", "trainer.num_boost_round=3"),
        ("trainer.num_boost_round=three", ""),
        ("nosuch", "nosuch=..."),
        ("run.resume=auto", ""),
        ("RUN", "&& rtrain runs reproduce RUN"),
    ],
)
def test_what_is_advised_leaves_the_run_itself_alone(word, meant, project, capsys):
    run = trained("xgboost", "dataset=sklearn", "dataset.name=iris", "trainer.num_boost_round=2")
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    word, meant = (one.replace("RUN", str(run)) for one in (word, meant))
    capsys.readouterr()
    assert rtrain_command(["runs", "reproduce", "last", word]) == 2
    said = capsys.readouterr().err
    assert f"\n    rtrain runs reproduce {run} {word}\n" in said
    assert "rtrain resume" not in said
    assert "run.resume=never" not in said
    assert not meant or said.endswith(f"  try: rtrain runs reproduce {run} {meant}\n")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files


def test_a_run_that_resumed_by_itself_is_trained_anew(project, capsys):
    words = ("mlp", "epochs=1", "dataset.limit=50", "run.resume=auto")
    run = trained(*words)
    capsys.readouterr()
    assert rtrain_command(["runs", "reproduce", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"equal        all metrics of {run}"
    assert len(list(run.parent.iterdir())) == 2


def test_a_run_without_metrics_is_equal_to_nothing(project, capsys):
    Path("own.py").write_text("def train(config): pass\n")
    Path("own.yaml").write_text("defaults: [{trainer: torch}]\ntrainer: {train_loop: 'own:train'}\n")
    run = trained("own.yaml")
    capsys.readouterr()
    assert rtrain_command(["runs", "reproduce", str(run)]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "same         versions and data",
        "unknown      code: it is not in git",
        "not compared metrics: there are none of the same steps",
    ]


def test_a_run_that_was_stopped_early_is_compared_as_far_as_it_got(project, capsys):
    words = ("mlp", "dataset.limit=50", "trainer.max_epochs=4", "run.stop.target={val/loss: 100}")
    run = trained(*words)
    capsys.readouterr()
    assert rtrain_command(["runs", "reproduce", str(run), "run.stop.target={val/loss: 0}"]) == 0
    *_, ended, equal = capsys.readouterr().out.splitlines()
    assert ended.startswith("ended        at step ")
    assert ended.endswith(", and now at step 4")
    assert equal == f"equal        all metrics of step 1, as in {run}"


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


def new_project(folder, text):
    (folder / "nets.py").write_text(text)
    (folder / ".gitignore").write_text("runs\ncache\n__pycache__\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")


NETS = """from torch import nn


class Net(nn.Sequential):
    def __init__(self, num_classes):
        super().__init__(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, num_classes))
"""
OWN = ("trainer.model={_target_: nets.Net, num_classes: auto}", "num_workers=0", "dataset.limit=100", "run.name=own")
OTHER = NETS.replace("ReLU", "Tanh")


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("was_dirty", [True, False])
def test_a_run_resumed_by_other_code_says_so_and_is_not_called_the_same(
    tmp_path, monkeypatch, capsys, was_dirty, is_committed
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new_project(tmp_path, OTHER if was_dirty else NETS)
    (tmp_path / "nets.py").write_text(NETS)
    assert rtrain_command(["fit", "mlp", *OWN, "epochs=1"]) == 0
    (run,) = (tmp_path / "runs" / "own").iterdir()
    began = read_manifest(run).git
    assert (run / "code.diff").exists() == began["dirty"] == was_dirty
    assert rtrain_command(["resume", "last:own", "epochs=2"]) == 0
    assert "code_before" not in read_manifest(run).resumes[0], "it is the same"
    (tmp_path / "nets.py").write_text(NETS.replace("Linear(8", "Linear(4 + 4"))
    if is_committed:
        git("commit", "-qam", "second")
    capsys.readouterr()
    assert rtrain_command(["resume", "last:own", "epochs=3"]) == 0
    assert "the code is another one than before: " in capsys.readouterr().err
    manifest = read_manifest(run)
    (before,) = [one["code_before"] for one in manifest.resumes[1:]]
    for name, key in (("commit", "commit"), ("uncommitted changes", "diff_sha256")):
        assert before.get(name, manifest.git.get(key)) == began.get(key)
    assert (run / "code.diff").exists() == was_dirty, "of the beginning"
    assert (run / "code-resume-2.diff").exists() != is_committed
    assert rtrain_command(["runs", "show", "last:own"]) == 0
    assert ("code-resume-2.diff" in capsys.readouterr().out) != is_committed
    rtrain_command(["runs", "reproduce", "last:own"])
    told = capsys.readouterr().out
    assert "same         code" not in told
    assert f" until {manifest.resumes[1]['time']} was " in told


def test_a_resume_by_other_versions_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert rtrain_command(["fit", "mlp", "num_workers=0", "dataset.limit=100", "epochs=1"]) == 0
    (run,) = (tmp_path / "runs" / "mlp").iterdir()
    manifest = read_manifest(run)
    versions = {name: one for name, one in manifest.versions.items() if name != "ray"}
    replace(manifest, versions={**versions, "torch": "1.0", "gone": "3"}).write(run)
    capsys.readouterr()
    assert rtrain_command(["resume", "last", "epochs=2"]) == 0
    assert "the code is another one than before: torch 1.0 -> " in capsys.readouterr().err
    assert read_manifest(run).resumes[0]["code_before"] == {"torch": "1.0"}


UNTRACKED = {"edited": ("nets.py", OTHER), "new": ("more.py", "a = 1\n"), "not code": ("notes.txt", "a")}


@pytest.mark.parametrize("kind", UNTRACKED)
def test_code_that_is_not_in_git_is_compared_too(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    new_project(tmp_path, NETS)
    git("rm", "-q", "--cached", "nets.py")
    git("commit", "-qm", "second")
    assert rtrain_command(["fit", "mlp", *OWN, "epochs=1"]) == 0
    name, text = UNTRACKED[kind]
    (tmp_path / name).write_text(text)
    capsys.readouterr()
    assert rtrain_command(["resume", "last:own", "epochs=2"]) == 0
    assert ("code that is not in git" in capsys.readouterr().err) == (kind != "not code")
    if kind != "not code":
        rtrain_command(["runs", "reproduce", "last:own"])
        assert "same         code" not in capsys.readouterr().out


@pytest.mark.parametrize("known_first", [True, False])
def test_a_commit_that_git_does_not_tell_is_unknown(tmp_path, monkeypatch, capsys, known_first):
    monkeypatch.chdir(tmp_path)
    new_project(tmp_path, NETS)
    folders = [tmp_path / ".git", tmp_path / "away"]
    if not known_first:
        folders[0].rename(folders[1])
        folders.reverse()
        (tmp_path / "pyproject.toml").touch()
    assert rtrain_command(["fit", "mlp", *OWN, "epochs=1"]) == 0
    folders[0].rename(folders[1])
    (tmp_path / "pyproject.toml").touch()
    capsys.readouterr()
    assert rtrain_command(["resume", "last:own", "epochs=2"]) == 0
    assert "unknown" in capsys.readouterr().err
    rtrain_command(["runs", "reproduce", "last:own"])
    assert "same         code" not in capsys.readouterr().out


def test_a_package_that_only_the_list_of_packages_has_is_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert rtrain_command(["fit", "mlp", "num_workers=0", "dataset.limit=100", "epochs=1"]) == 0
    (run,) = (tmp_path / "runs" / "mlp").iterdir()
    packages = (run / "packages.txt").read_text()
    (run / "packages.txt").write_text(packages.replace("\npytest==", "\npytest==0.") + "gone==1.0\n")
    capsys.readouterr()
    assert rtrain_command(["resume", "last", "epochs=2"]) == 0
    assert "the code is another one than before: pytest 0." in capsys.readouterr().err
    assert (run / "packages-resume-1.txt").read_text() == packages
