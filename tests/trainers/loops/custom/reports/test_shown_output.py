"""``run.show_output``: where lines go that a loop in this process prints, in a run and in the trials of a sweep."""

from pathlib import Path

import pytest

from rtrain.cli.app import run as rtrain

LOOP = """
import sys

import ray.train


def speak(config):
    print("said", config["word"])
    print("warned", config["word"], file=sys.stderr)
    ray.train.report({"loss": 1.0})
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Work in a project with a loop that prints."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("speaking_loop.py").write_text(LOOP)
    Path("speak.yaml").write_text(
        "trainer: {type: torch, train_loop: 'speaking_loop:speak', train_loop_config: {word: one}}\n"
        "scaling: {num_workers: 0}\n"
    )


@pytest.mark.parametrize(("shows", "times"), [(None, 1), ("rank0", 1), ("all", 1), ("none", 0)])
def test_output_in_this_process_is_shown_once_or_not_at_all_and_is_in_the_log(shows, times, capsys):
    assert rtrain(["fit", "speak.yaml", *([] if shows is None else [f"run.show_output={shows}"])]) == 0
    out, err = capsys.readouterr()
    assert [out.splitlines().count("said one"), err.splitlines().count("warned one")] == [times, times]
    (log,) = Path("runs").glob("*/*/logs/worker-0.log")
    assert log.read_text() == "said one\nwarned one\n"


@pytest.mark.parametrize(("shows", "times"), [("rank0", 0), ("all", 1), ("none", 0)])
def test_output_of_trials_is_shown_with_their_names_if_all_is_wanted(shows, times, capsys):
    words = ["trainer.train_loop_config.word=one,two", "sweep.metric=loss", f"run.show_output={shows}"]
    assert rtrain(["fit", "speak.yaml", "--multirun", *words]) == 0
    text = "".join(capsys.readouterr())
    logs = sorted(Path("runs").glob("*/0*/logs/worker-0.log"))
    assert [log.read_text() for log in logs] == ["said one\nwarned one\n", "said two\nwarned two\n"]
    for log, word in zip(logs, ("one", "two"), strict=True):
        for line in (f"said {word}", f"warned {word}"):
            assert text.count(line) == text.splitlines().count(f"{log.parents[1].name}: {line}") == times
