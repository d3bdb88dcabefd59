"""The lines that report a run."""

import pytest

from rtrain.run_lines import Limits, event_line
from rtrain.runs.events import Event


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
