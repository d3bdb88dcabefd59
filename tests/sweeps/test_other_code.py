"""Trials of other code, and trials that were resumed apart from their sweep, are told from the rest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rtrain.cli.app import run as command

NETS = """from torch import nn


class Net(nn.Sequential):
    def __init__(self, num_classes):
        super().__init__(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, num_classes))
"""
SWEEP = [
    *("fit", "mlp", "--multirun", "sweep.name=nets", "num_workers=0", "dataset.limit=100", "epochs=1"),
    "trainer.model={_target_: nets.Net, num_classes: auto}",
]


def git(*words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


@pytest.fixture
def swept(tmp_path, monkeypatch, capsys):
    """The folder of a sweep over two rates, in a project that is in git."""
    monkeypatch.chdir(tmp_path)
    Path("nets.py").write_text(NETS)
    Path(".gitignore").write_text("runs\n__pycache__\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert command([*SWEEP, "lr=0.1,0.01"]) == 0
    capsys.readouterr()
    return Path("runs/nets")


@pytest.mark.parametrize("edited", [True, False])
def test_more_trials_by_other_code_are_told(swept, capsys, edited):
    if edited:
        Path("nets.py").write_text(NETS.replace("Linear(8", "Linear(4 + 4"))
    assert command([*SWEEP, "lr=0.1,0.01,0.001"]) == 0
    told = "the code is another one than that of 001-" in capsys.readouterr().err
    assert told == edited
    assert command([*SWEEP, "lr=0.1,0.01,0.001"]) == 0
    assert "the code is another one" not in capsys.readouterr().err, "nothing is left to train"


def test_a_trial_that_is_resumed_alone_says_that_its_sweep_stays_as_it_is(swept, capsys):
    trials = json.loads((swept / "sweep.json").read_text())
    trial = swept / trials["trials"][trials["best"]]["name"]
    assert command(["resume", str(trial), "epochs=3"]) == 0
    assert "it is a trial of runs/nets, whose record and best trial stay as they are" in capsys.readouterr().err
    assert command(["sweep", "show", str(swept)]) == 0
    assert "(then resumed with trainer.max_epochs: 1 -> 3)" in capsys.readouterr().out
    assert command(["resume", str(swept)]) == 0
    assert "it is a trial of" not in capsys.readouterr().err
