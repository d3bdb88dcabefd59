"""Code that a config names never sees the arguments of whatever runs it: of the command, a script of Python or Ray."""

import sys

import pytest

import rtrain
from rtrain.cli.app import run as command

MODULE = """
import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import ray.train
from torch import nn

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--lr", type=float, default=0.1)
LR = PARSER.parse_args().lr


def rows():
    PARSER.parse_args()
    return pd.DataFrame({"a": np.arange(40) / 40, "b": 1.0, "label": np.arange(40) % 2})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        PARSER.parse_args()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        PARSER.parse_args()
        return self.layer(x)


def train(config):
    rows = sum(1 for _ in ray.train.get_dataset_shard("train").iter_rows())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model").touch()
        ray.train.report({"lr": PARSER.parse_args().lr + LR, "rows": rows}, ray.train.Checkpoint(folder))


def load(folder):
    PARSER.parse_args()
    return lambda batch: (PARSER.parse_args(), np.zeros(len(batch["a"])))[1]
"""
DATA = "dataset: {type: python, function: my_parsing_code.rows, label: label, split: {test: 0.25}}\n"
TRAINERS = {
    "declared": "defaults: [{optimizer: sgd}]\n"
    "trainer: {type: torch, max_epochs: 1, model: {_target_: my_parsing_code.Net}}\n",
    "loop": "trainer: {type: torch, train_loop: 'my_parsing_code:train', predictor: 'my_parsing_code:load'}\n",
}


@pytest.fixture(params=TRAINERS)
def config(tmp_path, monkeypatch, request):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_parsing_code.py").write_text(MODULE)
    (tmp_path / "conf.yaml").write_text(TRAINERS[request.param] + DATA)
    monkeypatch.chdir(tmp_path)
    return "conf.yaml"


def run(*words):
    """Run a command as its process has it."""
    sys.argv = ["rtrain", *words]
    assert command(words) == 0
    assert sys.argv == ["rtrain", *words]


def runs_alike(config, monkeypatch, workers):
    monkeypatch.setattr(sys, "argv", [])
    run("fit", config, workers)
    (folder,) = rtrain.runs()
    run("predict", str(folder.path), workers, "-o", "out.parquet")
    run("fit", config, workers, "run.seed=1,2", "--multirun")


def test_in_this_process(config, monkeypatch):
    runs_alike(config, monkeypatch, "num_workers=0")


@pytest.mark.slow
def test_on_workers_of_ray(config, monkeypatch):
    runs_alike(config, monkeypatch, "num_workers=1")


def test_those_of_a_script_that_calls_rtrain_stay_its_own(config, monkeypatch):
    own = ["my_script.py", "--data", "here"]
    monkeypatch.setattr(sys, "argv", own)
    run = rtrain.fit(config, num_workers=0)
    run.predict()
    assert sys.argv is own
    assert own == ["my_script.py", "--data", "here"]
