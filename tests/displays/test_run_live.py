"""What a terminal shows of one run while it trains."""

import io
import re
import threading
from dataclasses import replace

import pytest
from processes import fork_ends
from rich.console import Console

from rtrain.displays.run_live import LiveDisplay
from rtrain.history.query.quantities import clock
from rtrain.run_lines import Limits
from rtrain.runs.events import Event
from rtrain.runs.records import ProgressRecord
from rtrain.testing.workers import make_manifest


@pytest.fixture
def now(monkeypatch):
    """The time that the display sees, in seconds; a list of one."""
    now = [1000.0]
    monkeypatch.setattr("rtrain.displays.run_live.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def display(now):
    display = LiveDisplay(Console(file=io.StringIO(), width=160, force_terminal=True, get_time=lambda: now[0]))
    display._limits = Limits(max_epochs=10, max_steps=None)
    return display


def shown(display):
    display._console.print(display._render())
    text = display._console.file.getvalue()
    display._console.file.seek(0)
    display._console.file.truncate()
    return text


def a_record(step):
    return ProgressRecord(step=step, epoch=step // 100, rows=64, steps_per_epoch=100)


def test_the_time_left_is_that_of_the_steps_that_are_left_in_a_run_that_went_on_too(display, now):
    now[0] += 30  # the preparation is no part of the speed
    display.progress(a_record(500))  # where it went on
    assert "left" not in shown(display)
    for step in range(501, 511):
        now[0] += 1
        display.progress(a_record(step))
    assert "epoch 6/10" in shown(display)
    assert "8:10 left" in shown(display)
    assert "step 510/1000  64 rows/s" in shown(display)


def test_a_step_may_take_longer_than_a_minute(display, now):
    for step in (1, 2, 3):
        now[0] += 90
        display.progress(a_record(step))
    assert "24:55:30 left" in shown(display)
    display.progress(a_record(4))
    now[0] += 64
    display.progress(a_record(5))
    assert "  1 rows/s" in shown(display)


def test_reports_move_it_where_nothing_else_tells_of_steps(display, now):
    display._describe("starting workers", detail="")
    display.event(Event.at(now[0], step=7, epoch=3, metrics={"loss": 1.0}))
    text = shown(display)
    assert "epoch 3" in text
    assert "step 7" in text
    assert "starting workers" not in text
    display.progress(a_record(510))
    display.event(Event.at(now[0], step=511, epoch=5, metrics={"loss": 0.5}))
    assert "epoch 6/10" in shown(display)


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0:00"), (59, "0:59"), (61, "1:01"), (3661, "1:01:01")])
def test_times_are_written_as_on_a_clock(seconds, text):
    assert clock(seconds) == text


def test_what_workers_print_is_shown_without_what_a_terminal_obeys(display):
    display.printed("[bold]one[/bold]\ntw\x1b]0;title\x07o")
    assert [line.rstrip() for line in shown(display).splitlines()[:2]] == ["[bold]one[/bold]", r"tw\x1b]0;title\x07o"]


def test_a_fork_prints_while_a_thread_draws(display, monkeypatch):
    drawing, drawn, render = threading.Event(), threading.Event(), display._render

    def slow():
        if threading.current_thread() is thread:
            with display._progress._lock, display._console._lock, display._console._record_buffer_lock:
                drawing.set()
                drawn.wait(10)
        return render()

    thread = threading.Thread(target=lambda: display._live.refresh())
    monkeypatch.setattr(display, "_render", slow)
    with display:
        thread.start()
        drawing.wait(10)
        ends = fork_ends(lambda: print("quick"))
        drawn.set()
        thread.join()
    assert ends


@pytest.mark.parametrize(("status", "colour"), [("succeeded", "32"), ("failed", "31"), ("interrupted", "33")])
def test_the_end_of_a_run_has_the_colour_of_its_status(status, colour):
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=100)
    LiveDisplay(console)._say_end([f"result      {status} after 3 s: {status} it says", "best        a 1"], status)
    assert [one.split(";")[-1] for one in re.findall(rf"\x1b\[([\d;]+)m{status}", console.file.getvalue())] == [colour]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_never_breaks_what_a_run_shows_inside_a_word(width, tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)
    display = LiveDisplay(console)
    manifest = replace(
        make_manifest(),
        status="succeeded",
        resources={"num_workers": 2},
        timings_seconds={"prepare": 1, "start": 2, "train": 3, "total": 4},
    )
    display.started(tmp_path, manifest)
    display.notice(f"a word and another one {'and one ' * 30}")
    metrics = {f"val/metric_{number}": number / 3 for number in range(9)}
    display.event(Event.at(0, step=1, epoch=1, metrics={**metrics, "train/epoch_loss": 1.0}))
    display.ended(tmp_path, manifest)
    lines = console.file.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width or len(line.split()) <= 2 for line in lines), lines
    assert any(line.startswith("time ") for line in lines)
