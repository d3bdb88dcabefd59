"""Samples of the machine, and who gets them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from tracker_readers import of_tensorboard

import rtrain
from rtrain.tracking import system_metrics
from rtrain.tracking.system_metrics import SystemMetrics

NAMES = {
    "system/cpu_utilization_percentage",
    "system/system_memory_usage_megabytes",
    "system/system_memory_usage_percentage",
}


def test_a_sample_is_due_each_time_the_interval_has_passed(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(system_metrics.time, "monotonic", lambda: clock[0])
    began = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    metrics, found = SystemMetrics(began, 10), []
    for now in (100, 105, 110, 115, 121):
        clock[0] = float(now)
        found.append(metrics.due())
    assert [one is not None for one in found] == [False, False, True, False, True]
    assert found[2].seconds == pytest.approx(3600, abs=60)
    assert found[2].values.keys() >= NAMES
    assert all(0 <= value <= 100 for name, value in found[2].values.items() if name.endswith("percentage"))


def test_a_tracker_gets_samples_while_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rtrain.tracking.delivery.POLL_SECONDS", 0.01)
    words = ["num_workers=0", "epochs=30", "run.loggers=tensorboard", "run.system_metrics_seconds=0.1"]
    run = rtrain.fit("mlp", words)
    found = of_tensorboard(run.path / "tensorboard", system=True)
    assert found.keys() >= NAMES
    assert json.loads((run.path / "loggers" / "tensorboard.json").read_text())["step"] == max(found["val/loss"])


def test_nothing_is_measured_unless_a_tracker_takes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SystemMetrics, "due", lambda self: pytest.fail("measured"))
    rtrain.fit("mlp", ["num_workers=0", "epochs=1", "run.loggers=csv"])
    rtrain.fit("mlp", ["num_workers=0", "epochs=1", "run.loggers=tensorboard", "run.system_metrics_seconds=null"])
