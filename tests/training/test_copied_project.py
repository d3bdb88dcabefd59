"""What was trained in a project goes on, in a copy of the project, with the code of the copy."""

import json
import shutil
from pathlib import Path

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.config.files.locations import project_of
from rtrain.config.targets.forgetting import project_forgotten

LOSS = """
import torch
class Loss(torch.nn.Module):
    def forward(self, output, target):
        return torch.nn.functional.cross_entropy(output, target) * 0 + {}
"""
CONFIG = """
defaults: [{trainer: torch}, {model: mlp}, {optimizer: sgd}, {dataset: digits}, _self_]
dataset: {limit: 200, split: {val: 0.2}}
trainer: {max_epochs: 1, loss: {_target_: own.Loss}}
num_workers: 0
"""


@pytest.fixture(params=["its config at the top", "its config in a folder"])
def copied(request, tmp_path, monkeypatch):
    """Train a run and a sweep in a project whose loss is 1; work in a copy of it, whose loss is 2."""
    config = Path("own.yaml") if request.param.endswith("top") else Path("configs/own.yaml")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    config.parent.mkdir(exist_ok=True)
    config.write_text(CONFIG)
    Path("own.py").write_text(LOSS.format("1.0"))
    with project_forgotten():
        assert command(["fit", str(config), "run.name=one"]) == 0
        assert command(["fit", str(config), "sweep.name=two", "lr=0.1,0.2", "--multirun"]) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b", symlinks=True)
    monkeypatch.chdir(tmp_path / "b")
    Path("own.py").write_text(LOSS.format("2.0"))
    return config


def losses(place):
    return [
        json.loads(file.read_text())["metrics"]["val/loss"] for file in sorted(Path(place).glob("[0-9]*/manifest.json"))
    ]


@pytest.mark.parametrize("original", ["is there", "is gone"])
def test_the_code_of_the_copy_is_used(copied, original, caplog):
    if original == "is gone":
        shutil.rmtree("../a")
    (one,) = Path("runs/one").iterdir()
    with project_forgotten():
        rtrain.evaluate(one)
    assert "own.py changed since the checkpoint was written" in caplog.text
    with project_forgotten():
        assert command(["runs", "reproduce", str(one)]) == 1, "other code, another loss"
    assert sorted(losses("runs/one")) == [1, 2]
    with project_forgotten():
        assert command(["resume", str(one), "epochs=2"]) == 0
    assert losses("runs/one") == [2, 2]
    with project_forgotten():
        assert command(["resume", "runs/two", "lr=0.1,0.2,0.3"]) == 0
    assert losses("runs/two") == [1, 1, 2]
    with project_forgotten():
        assert command(["fit", str(copied), "sweep.name=two", "lr=0.1,0.2,0.3,0.4", "--multirun"]) == 0
    assert losses("runs/two") == [1, 1, 2, 2]
    if original == "is there":
        assert losses("../a/runs/two") == [1, 1], "nothing was trained there"


@pytest.mark.parametrize(
    ("place", "config", "project"),
    [
        ("a/runs/one", "a/own.yaml", "a"),
        ("b/runs/one", "a/own.yaml", "b"),
        ("b/deep/runs/one", "a/own.yaml", "b"),
        ("b/runs/one", "gone/own.yaml", "b"),
        ("elsewhere/runs/one", "a/own.yaml", "a"),
        ("elsewhere/runs/one", "gone/own.yaml", None),
        ("b/runs/two", "a/own.yaml", "a"),
        ("b/runs/one", None, "a"),
        ("b/runs/one", "other/own.yaml", "a"),
    ],
)
def test_a_run_belongs_to_the_project_that_it_lies_in_if_that_has_its_config(tmp_path, place, config, project):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.yaml").write_text("")
    for folder in (place, "a/runs/one", "a/deep/runs/one"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    recorded = "gone" if config and config.startswith("gone") else "a"
    config = config and str(tmp_path / config)
    found, moved = project_of(tmp_path / place, str(tmp_path / recorded), config)
    assert found == (project and tmp_path / project)
    assert moved == (str(tmp_path / "b" / "own.yaml") if project == "b" else config)
