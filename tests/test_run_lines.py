"""The lines that report a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtrain.run_lines import Limits, end_lines, event_line, start_line
from rtrain.runs.events import Event
from rtrain.testing.workers import make_manifest

CHECKPOINTS = [{"name": "epoch-0001-step-9"}, {"name": "epoch-0002-step-18"}]
RESUMES = [{"time": "2026-12-01T10:00:00.000+00:00"}]
BEFORE = {"started_at": "2026-12-01T09:00:00.000+00:00", "from_checkpoint": None}
AFTER = {"started_at": "2026-12-01T10:00:02.000+00:00", "from_checkpoint": "epoch-0001-step-9"}
NO_CHECKPOINT = {"from_checkpoint": None}


@pytest.mark.parametrize(
    ("reported", "place"),
    [
        ({}, "epoch 3  step 7"),
        ({"epoch": 3.0, "step": 7.0}, "epoch 3  step 7"),
        ({"epoch": 0.25}, "epoch 0.25  step 7"),
        ({"step": 5.0}, "epoch 3  step 5"),
        ({"step": 1_234_567.0, "epoch": 100_000.0}, "epoch 100000  step 1234567"),
        ({"epoch": None, "step": float("inf")}, "epoch 3  step 7"),
    ],
)
def test_an_epoch_and_a_step_are_shown_once_as_the_loop_reports_them(reported, place):
    event = Event(step=7, epoch=3, time="", metrics={**reported, "loss": 0.5})
    assert event_line(event, Limits(None, None)) == f"{place}  loss 0.5"


@pytest.mark.parametrize(
    "facts",
    [
        {"timings_seconds": {}},
        *({"best": best, "metrics": {"val/loss": 0.5}} for best in ({"value": 1.0, "monitor": "val/loss"}, {}, None)),
    ],
    ids=["no times", "no place of the best", "nothing of the best", "no best"],
)
def test_a_record_that_lacks_something_is_told_without_it(facts):
    known = {"status": "succeeded", "timings_seconds": {"total": 3.0}, "resources": {"num_workers": 0}}
    lines = end_lines(Path("/runs/b"), replace(make_manifest(), **known | facts))
    assert lines[0].startswith("result      succeeded")


@pytest.mark.parametrize(
    ("facts", "verb", "where"),
    [
        ({}, "training", ""),
        ({"checkpoints": CHECKPOINTS}, "training", ""),
        ({"checkpoints": CHECKPOINTS, "attempts": [BEFORE]}, "training", ""),
        ({"checkpoints": CHECKPOINTS, "resumes": RESUMES}, "resuming", "epoch-0002-step-18"),
        ({"checkpoints": CHECKPOINTS, "resumes": RESUMES, "attempts": [BEFORE]}, "resuming", "epoch-0002-step-18"),
        (
            {"checkpoints": CHECKPOINTS, "resumes": RESUMES, "attempts": [BEFORE, AFTER]},
            "resuming",
            "epoch-0001-step-9",
        ),
        ({"checkpoints": CHECKPOINTS, "resumes": RESUMES, "attempts": [AFTER | NO_CHECKPOINT]}, "training", ""),
        ({"resumes": RESUMES}, "training", ""),
        ({"parent_run": "/runs/a/best"}, "training", "the weights of /runs/a/best"),
        ({"parent_run": "/runs/a/best", "checkpoints": CHECKPOINTS}, "training", "the weights of /runs/a/best"),
        (
            {"parent_run": "s3://b/a", "checkpoints": CHECKPOINTS, "resumes": RESUMES},
            "resuming",
            "epoch-0002-step-18",
        ),
    ],
)
def test_a_run_begins_with_where_it_comes_from(facts, verb, where):
    line = start_line(Path("/runs/b"), replace(make_manifest(), resources={"num_workers": 0}, **facts))
    assert line.startswith(f"{verb} ")
    assert line.partition(", from ")[2].partition(" -> ")[0] == where
