"""What a trial leaves in modules of the project is not there for the next one, wherever they hold it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from safetensors.torch import load_file

import rtrain
from rtrain.cli.app import run as command

LOOP = """import ray.train
{before}
def main(config):
    {inside}
    seen.append(1)
    ray.train.report({{"loss": len(seen)}})
"""
ONCE = """import sys
if sys.registered: raise KeyError("own_op is registered already")
sys.registered.append("own_op")
"""
PLACES = {
    "of the loop": {"loop.py": LOOP.format(before="seen = []", inside="pass")},
    "that it imports": {"kept.py": "seen = []", "loop.py": LOOP.format(before="from kept import seen", inside="pass")},
    "imported in a call": {"kept.py": "seen = []", "loop.py": LOOP.format(before="", inside="from kept import seen")},
    "of a folder": {
        "parts/kept.py": "seen = []",
        "loop.py": LOOP.format(before="", inside="from parts.kept import seen"),
    },
}
CONFIG = """
trainer: {type: torch, train_loop: "loop:main", train_loop_config: {a: 1}}
sweep: {name: trials, metric: loss, mode: min, params: {trainer.train_loop_config.a: [1, 2, 3]}}
"""


@pytest.fixture(params=PLACES)
def project(request, tmp_path, monkeypatch):
    """Work in a project with a loop that adds to a list of a module and reports its length."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("loop.yaml").write_text(CONFIG)
    for name, text in PLACES[request.param].items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "words", [["num_workers=0"], pytest.param(["num_workers=1", "sweep.max_concurrent=1"], marks=pytest.mark.slow)]
)
def test_each_trial_finds_the_modules_as_a_run_alone_would(project, words):
    assert command(["fit", "loop.yaml", "--multirun", *words]) == 0
    trials = json.loads(Path("runs/trials/sweep.json").read_text())["trials"]
    assert [one["values"] for one in trials] == [[1], [1], [1]]


@pytest.mark.parametrize("inside", ["pass", "import ops"])
def test_a_module_that_can_not_be_imported_twice_stays_as_it_was(tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "registered", [], raising=False)
    Path("pyproject.toml").write_text("")
    Path("loop.yaml").write_text(CONFIG)
    Path("ops.py").write_text(ONCE)
    Path("loop.py").write_text(
        LOOP.format(before="import ops\nseen = []" if inside == "pass" else "seen = []", inside=inside)
    )
    assert command(["fit", "loop.yaml", "--multirun", "num_workers=0"]) == 0
    trials = json.loads(Path("runs/trials/sweep.json").read_text())["trials"]
    assert [one["values"] for one in trials] == [[1], [1], [1]]
    logs = sorted(Path("runs/trials").glob("00[12]-*/logs/driver.log"))
    assert len(logs) == 2
    for log in logs:
        assert (
            "ops stays as it was: it can't be imported a second time in a process (KeyError: 'own_op is"
            in log.read_text()
        )


MODEL = """
import torch
seen = []
class Net(torch.nn.Module):
    def __init__(self, in_features, num_classes):
        super().__init__()
        seen.append(1)
        self.layer = torch.nn.Linear(in_features, num_classes)
        self.register_buffer("number", torch.tensor(float(len(seen))))
    def forward(self, x):
        return self.layer(x.flatten(1))
"""
DECLARED = """
defaults: [{trainer: torch}, {dataset: digits}, {optimizer: sgd}, _self_]
dataset: {limit: 200}
trainer: {max_epochs: 1, model: {_target_: nets.Net, in_features: auto, num_classes: auto}}
"""


@pytest.mark.parametrize(
    "words", [["num_workers=0"], pytest.param(["num_workers=1", "sweep.max_concurrent=1"], marks=pytest.mark.slow)]
)
def test_what_the_check_has_built_is_forgotten_too(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("own.yaml").write_text(DECLARED)
    Path("nets.py").write_text(MODEL)
    assert command(["fit", "own.yaml", "--multirun", "lr=0.1,0.2,0.3", *words]) == 0
    assert command(["fit", "own.yaml", words[0]]) == 0
    found = sorted(Path("runs").glob("**/model.safetensors"))
    assert len({file.parents[2] for file in found}) == 4, "runs"
    assert {float(load_file(file)["number"]) for file in found} == {1.0}


def test_modules_of_the_program_that_asks_for_the_sweep_stay_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("pyproject.toml").write_text("")
    Path("loop.yaml").write_text(CONFIG)
    Path("loop.py").write_text(PLACES["of the loop"]["loop.py"])
    loop = import_module("loop")
    loop.seen = [0] * 7
    try:
        trials = rtrain.sweep("loop.yaml", num_workers=0).trials
        assert [one.values for one in trials] == [{"loss": 8}, {"loss": 9}, {"loss": 10}]
        assert sys.modules["loop"] is loop
    finally:
        del sys.modules["loop"]
