"""What a loop writes in the current folder is named, in every way of running; relative paths stay what they were."""

import json
import os
import subprocess
import sys

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import TrainingError
from rtrain.runs.run import Run
from rtrain.runs.written_files import written_files

LOOPS = """
import pathlib

import ray.train


def train(config):
    rank = ray.train.get_context().get_world_rank()
    text = pathlib.Path("data/rows.csv").read_text()
    pathlib.Path(f"model-{rank}.pt").write_text(text + str(config["lr"]))
    tried = pathlib.Path(f"tried-{rank}")
    is_again = tried.exists()
    tried.touch()
    if config["fails"] and not is_again:
        raise OSError("no luck")
    ray.train.report({"epoch": 5, "step": 9, "loss": config["lr"]})
"""
CONFIG = """
trainer: {type: torch, train_loop: 'writing_loops:train', train_loop_config: {lr: 1.0, fails: false}}
scaling: {num_workers: 0}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "writing_loops.py").write_text(LOOPS)
    (tmp_path / "loop.yaml").write_text(CONFIG)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rows.csv").write_text("1,2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line_of(text, name):
    (line,) = [one for one in text.splitlines() if one.startswith(f"{name} ")]
    return line


def test_the_summary_and_the_manifest_name_them(project, capsys):
    assert command(["fit", "loop.yaml"]) == 0
    text = capsys.readouterr().out
    run = line_of(text, "run").split()[1]
    assert line_of(text, "files").split(maxsplit=1)[1] == f"model-0.pt, tried-0 in {project}; copies in {run}/written"
    assert line_of(text, "last") == "last        loss 1 (epoch 5, step 9)"
    assert text.count("epoch 5") == 2
    (run,) = rtrain.runs()
    assert run.manifest.files == {
        "folder": str(project),
        "new": ["model-0.pt", "tried-0"],
        "replaced": [],
        "copies": "written",
    }
    assert (run.path / "written/model-0.pt").read_text() == "1,21.0"
    assert command(["runs", "show", "last"]) == 0
    assert "model-0.pt" in line_of(capsys.readouterr().out, "files")


def test_those_of_a_run_that_failed_are_named_and_those_replaced_by_its_resumption(project):
    with pytest.raises(TrainingError) as caught:
        rtrain.fit("loop.yaml", ["trainer.train_loop_config.fails=true"])
    run = caught.value.run
    assert run.manifest.files["new"] == ["model-0.pt", "tried-0"]
    resumed = rtrain.resume(run, ["trainer.train_loop_config.lr=2.0"])
    assert resumed.manifest.files["replaced"] == ["model-0.pt", "tried-0"]
    assert (run.path / "written/model-0.pt").read_text() == "1,22.0"


def test_each_run_keeps_what_the_next_one_replaces(project):
    runs = [rtrain.fit("loop.yaml", [f"trainer.train_loop_config.lr={lr}"]) for lr in (1.0, 2.0)]
    assert [(run.path / "written/model-0.pt").read_text() for run in runs] == ["1,21.0", "1,22.0"]
    assert (project / "model-0.pt").read_text() == "1,22.0"


def test_files_that_are_too_large_or_no_files_are_not_copied(project, monkeypatch, capsys):
    monkeypatch.setattr("rtrain.runs.written_files.MAX_COPIED_BYTES", 10)
    folder = project / "made"
    with written_files() as files:
        for name, size in (("a", 4), ("b", 9), ("c/d", 6), ("e", 1)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"x" * size)
        os.mkfifo(folder / "pipe")
        (folder / "link").symlink_to("nowhere")
    assert files.copy_into(project / "run") == ["made/b", "made/e"]
    copies = {str(one.relative_to(project / "run/written")) for one in (project / "run").rglob("*") if one.is_file()}
    assert copies == {"made/a", "made/c/d"}


def test_a_copy_that_fails_is_told_and_the_run_succeeds(project, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rtrain.runs.written_files.shutil.copy2", full)
    assert command(["fit", "loop.yaml"]) == 0
    text = capsys.readouterr()
    assert "could not be copied into the run: [Errno 28] No space left on device" in text.err
    assert "copies in" not in text.out


PAIR = """
import pathlib
import time

import ray.train


def train(config):
    own, other = (pathlib.Path(f"runs/{name}.mark") for name in (config["name"], config["other"]))
    own.touch()
    until = time.monotonic() + 300
    while not other.exists():  # both train now
        assert time.monotonic() < until, "the other run has not begun"
        time.sleep(0.02)
    pathlib.Path("model.pt").write_text(config["name"])
    ray.train.report({"loss": 1.0})
"""


def pair_config(name, other):
    loop = f"{{train_loop: 'pair:train', type: torch, train_loop_config: {{name: {name}, other: {other}}}}}"
    return f"trainer: {loop}\nscaling: {{num_workers: 0}}\n"


def test_runs_that_train_side_by_side_do_not_claim_each_others_files(project):
    (project / "pair.py").write_text(PAIR)
    (project / "runs").mkdir()
    for name, other in ("ab", "ba"):
        (project / f"{name}.yaml").write_text(pair_config(name, other))
    words = [sys.executable, "-m", "rtrain", "fit"]
    started = [subprocess.Popen([*words, f"{name}.yaml"], stderr=subprocess.PIPE, text=True) for name in "ab"]
    try:
        said = [" ".join(one.communicate(timeout=300)[1].split()) for one in started]
    finally:
        for one in started:
            one.kill()
    runs = {run.manifest.run_name: run for run in rtrain.runs()}
    for text, (name, other) in zip(said, ("ab", "ba"), strict=True):
        assert runs[name].manifest.files["may_be_of"] == [f"runs/{other}/{runs[other].path.name}"]
        assert f"may be from runs/{other}/{runs[other].path.name}, which trained at the same time" in text
        assert "${hydra:runtime.output_dir}" in text
    alone = rtrain.fit("loop.yaml")
    assert "may_be_of" not in alone.manifest.files


def test_a_sweep_says_that_trials_replace_each_others_files(project, capsys):
    words = ["trainer.train_loop_config.lr=1.0,2.0", "--multirun", "sweep.metric=loss"]
    assert command(["fit", "loop.yaml", *words]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("model-0.pt") == 1
    assert "${hydra:runtime.output_dir}" in said


@pytest.mark.slow
def test_workers_write_and_read_where_the_run_was_started(project):
    words = ["num_workers=2", "trainer.train_loop_config.fails=true", "run.failure.max_failures=1"]
    assert command(["fit", "loop.yaml", *words]) == 0
    (folder,) = [one.parent for one in project.glob("runs/loop/*/manifest.json")]
    run = Run.load(folder)
    assert len(run.manifest.attempts) == 2
    assert run.manifest.files["new"] == ["model-0.pt", "model-1.pt", "tried-0", "tried-1"]
    assert json.loads((folder / "manifest.json").read_text())["files"]["folder"] == str(project)
