from types import SimpleNamespace

import pytest

from rtrain.config.run_conf import FailureConf, RunConf
from rtrain.engine.ray.worker_main import _watched, check_storage
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import checkpoints_dir


def test_a_machine_that_does_not_reach_the_run_directory_says_so_before_training(tmp_path):
    with pytest.raises(CheckpointError, match="can't access the run directory") as caught:
        check_storage(tmp_path / "elsewhere", ".reached")
    assert "Set run.root_dir" in str(caught.value)


def test_a_machine_that_reaches_it_goes_on(tmp_path):
    checkpoints_dir(tmp_path).mkdir()
    (checkpoints_dir(tmp_path) / ".reached").touch()
    check_storage(tmp_path, ".reached")


def test_a_worker_is_watched_for_as_long_as_the_key_says(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        "rtrain.engine.ray.worker_main.Watchdog",
        lambda rank, life, seconds, folder, channel: made.append(seconds) or SimpleNamespace(close=lambda: None),
    )
    for seconds in (7.0, None):
        run = RunConf(name="test", failure=FailureConf(hang_seconds=seconds))
        worker = SimpleNamespace(run=run, rank=0, life=None, run_dir=tmp_path)
        with _watched(worker, None):
            pass
    assert made == [7.0]
