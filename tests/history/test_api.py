"""``rtrain.runs()``."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from made_runs import make_run, make_sweep

import rtrain
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.lock import locked


def test_runs_are_run_objects_in_the_order_asked_for(project):
    first = make_run(project / "runs", losses=(0.5,))
    second = make_run(project / "runs", short_id="0a1c", losses=(0.2,), minutes=5, status="failed")
    make_run(project / "runs", short_id="0a1d").joinpath("manifest.json").write_text("{")
    found = rtrain.runs()
    assert [run.path for run in found] == [second, first]
    assert [run.status for run in found] == ["failed", "succeeded"]
    assert [run.path for run in rtrain.runs(where="best > 0.3")] == [first]
    assert [run.path for run in rtrain.runs("runs", sort="-best")] == [first, second]
    assert [run.path for run in found[1:]] == [first]
    assert next(found[0].events()).metrics == {"val/loss": 0.2}
    with pytest.raises(ConfigError):
        rtrain.runs(where="nonsense ==")


def test_runs_may_be_sorted_by_what_only_others_have(project):
    make_run(project / "runs", short_id="00a1", config={"trainer": {"optimizer": {"lr": 0.1}}})
    make_run(project / "runs", short_id="00a2", config={"trainer": {}}, seed=4)
    assert len(rtrain.runs(where="seed == 4", sort="lr")) == 1


def test_a_frame_holds_all_facts(project):
    make_sweep(project / "runs", rates=(0.1, 0.4))
    frame = rtrain.runs(sort="best").frame()
    assert list(frame.index) == ["330826/0", "330826/1"]
    assert list(frame["config.trainer.optimizer.lr"]) == [0.1, 0.4]
    assert list(frame["metrics.val/loss"]) == [0.05, 0.2]
    assert str(frame["started"].iloc[0]) == "2026-11-01 12:00:00+00:00"
    none = rtrain.runs(where="best > 5")
    assert len(none.frame()[["status", "best", "started"]]) == 0
    assert "<table" in none._repr_html_()
    assert all(text in rtrain.runs()._repr_html_() for text in ("330826/1", "succeeded", "val/loss", "2026-11-01"))


def test_a_run_that_was_killed_says_so_and_one_that_ended_since_how(project):
    folder = make_run(project / "runs", status="running")
    (run,) = rtrain.runs()
    with locked(folder):
        assert run.status == "running"
    assert run.status == "killed"
    assert "killed" in repr(run)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"status": "succeeded"}))
    assert run.status == "succeeded"


def test_the_package_can_be_called_before_and_after_it_is_imported(project):
    make_run(project / "runs")
    code = "import rtrain; a = len(rtrain.runs()); import rtrain.runs.run; print(a, len(rtrain.runs()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "1 1\n"
    assert pickle.loads(pickle.dumps(rtrain.runs)) is rtrain.runs
