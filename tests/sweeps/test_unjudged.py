"""What a sweep says of trials that it can't judge."""

from pathlib import Path

import pytest

from rtrain.cli.app import run as rtrain

LOOP = """
import ray.train


def train(config):
    ray.train.report({"loss": 1.0} if config["which"] == "known" else {"other": 2.0, "epoch": 1})
"""
CONFIG = "trainer: {type: torch, train_loop: 'partly:train', train_loop_config: {which: known}}\nnum_workers: 0\n"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def told_of(capsys, which):
    Path("pyproject.toml").write_text("")
    Path("partly.py").write_text(LOOP)
    Path("partly.yaml").write_text(CONFIG)
    words = ["fit", "partly.yaml", "--multirun", "sweep.metric=loss", "sweep.mode=min"]
    assert rtrain([*words, f"trainer.train_loop_config.which={which}"]) == 0
    return capsys.readouterr().err


def test_a_metric_that_other_trials_report_is_not_to_be_replaced(capsys):
    told = told_of(capsys, "known,unknown")
    assert "has never reported loss (sweep.metric); available: other, epoch" in told
    assert "try:" not in told


def test_a_metric_that_no_trial_reports_is_to_be_replaced(capsys):
    assert "sweep.metric=other" in told_of(capsys, "unknown,strange")
