"""What a run does again gets the secrets that it had, by their references, or is refused: never without them."""

from __future__ import annotations

from pathlib import Path

import pytest

import rtrain
from rtrain.errors import ConfigError

LOOP = """
from pathlib import Path

import numpy as np
import ray.train


def train(config):
    with Path(config["told"]).open("a") as file:
        print(config["address"], file=file)
    ray.train.report({"loss": 1.0})
    if config["fails"]:
        raise RuntimeError("away")


def rows(address, told):
    with Path(told).open("a") as file:
        print(address, file=file)
    return {"x": np.arange(40.0).reshape(20, 2), "y": np.arange(20.0)}
"""
REFERENCES = [
    "https://me:${oc.env:TOK}@h/x",
    "postgresql://${oc.env:ME}:${oc.env:TOK}@h:5/db",
    "https://${oc.env:TOK}@h",
]
LITERALS = ["https://me:hunter2word@h/x", "postgresql://hunter2word@h/db", "https://me:x${oc.env:TOK}@h"]
KEY = "trainer.train_loop_config.address"


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOK", "hunter2word")
    monkeypatch.setenv("ME", "somebody")
    Path("pyproject.toml").write_text("")
    Path("away.py").write_text(LOOP)


def write(address):
    told = Path("told.txt").absolute()
    text = f"""
trainer:
  type: torch
  train_loop: away:train
  train_loop_config: {{address: '{address}', told: {told}, fails: true}}
scaling: {{num_workers: 0}}
"""
    Path("job.yaml").write_text(text)


def fail():
    """Return the folder of a run that failed."""
    with pytest.raises(rtrain.TrainingError) as failed:
        rtrain.fit("job.yaml")
    return failed.value.run_dir


def written(folder):
    """Return what holds the secret; what the loop itself wrote is its own."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and "written" not in path.parts]
    return [path for path in files if b"hunter2word" in path.read_bytes()]


@pytest.mark.parametrize("address", REFERENCES)
def test_a_resumed_run_has_the_address_that_it_began_with(address):
    write(address)
    folder = fail()
    rtrain.resume(folder, ["trainer.train_loop_config.fails=false"])
    first, second = Path("told.txt").read_text().split()
    assert first == second
    assert "hunter2word" in first
    assert not written(folder)


@pytest.mark.parametrize("address", LITERALS)
def test_a_run_whose_address_is_not_recorded_needs_it_again(address):
    write(address)
    folder = fail()
    with pytest.raises(ConfigError, match=rf"{KEY}: the value is \*\*\*"):
        rtrain.resume(folder, ["trainer.train_loop_config.fails=false"])
    rtrain.resume(folder, ["trainer.train_loop_config.fails=false", f"{KEY}='{address}'"])
    first, second = Path("told.txt").read_text().split()
    assert first == second
    assert not written(folder)


@pytest.mark.parametrize("address", [REFERENCES[0], LITERALS[0]])
def test_a_model_is_evaluated_on_data_from_the_same_address_or_not_at_all(address, tmp_path):
    told = tmp_path / "told.txt"
    words = [
        "dataset=python",
        "dataset.function=away:rows",
        f"dataset.arguments={{address: '{address}', told: {told}}}",
    ]
    run = rtrain.fit("xgboost", [*words, "num_workers=0", "trainer.num_boost_round=1", "dataset.task=regression"])
    if address in LITERALS:
        with pytest.raises(ConfigError, match=r"dataset\.arguments\.address: the value is \*\*\*"):
            rtrain.evaluate(run.path)
    else:
        rtrain.evaluate(run.path)
    assert len(set(told.read_text().split())) == 1
    assert not written(run.path)
