"""docs/scripts.md: each script of the page runs as it is, and its commands on workers; the others run in tests/docs."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.config.targets.forgetting import project_forgotten

PAGE = (Path(rtrain.__file__).parents[1] / "docs" / "scripts.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
PARTS = re.compile(
    r"```\w+\n# (?P<file>\S+)\n(?P<text>.*?)```|^    (?P<command>rtrain [^\n]*)$", re.DOTALL | re.MULTILINE
)


def parts_of(section):
    """Yield what a section says in its order: (name of a file, its text), or (None, a command)."""
    for found in PARTS.finditer(SECTIONS[section]):
        yield (found["file"], found["text"]) if found["file"] else (None, found["command"])


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def follow(project, section, is_due):
    """Do what a section says; return its runs, oldest first."""
    for file, text in parts_of(section):
        if file:
            (project / file).write_text(text)
        elif is_due(text):
            _, *words = shlex.split(text)
            with project_forgotten():  # each command has a process of its own
                assert command(words) == 0, text
    return sorted(rtrain.runs(), key=lambda one: one.manifest.started_at)


def in_process(line):
    return "num_workers=0" in line or "last" in line


@pytest.mark.parametrize("section", ["Plain PyTorch", "Files that a script writes"])
def test_files_of_a_script_are_noted_or_kept(section, project):
    runs = follow(project, section, in_process)
    assert {run.status for run in runs} == {"succeeded"}
    files = {name: run for run in runs for name in run.manifest.files.get("new", [])}
    assert list(files) == (["model.pt"] if section == "Plain PyTorch" else [])
    kept = sum((run.path / "files" / "notes.txt").is_file() for run in runs)
    assert kept == (section == "Files that a script writes")


@pytest.mark.slow
def test_the_commands_that_need_workers_work(project):
    (run,) = follow(project, "Ray Train", lambda line: not in_process(line))
    assert run.manifest.metrics["epoch"] == 3
    assert len(run.manifest.checkpoints) == 2


@pytest.mark.parametrize("section", ["Plain PyTorch", "Lightning"])
def test_the_scripts_run_without_rtrain(section, project, monkeypatch):
    file, text = next(parts_of(section))
    (project / file).write_text(text)
    monkeypatch.setattr("sys.argv", [file])
    runpy.run_path(file, run_name="__main__")
