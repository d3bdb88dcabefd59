"""Names and texts of anybody's files are shown as they are spelled: terminals obey none, and rich reads no markup."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from made_runs import make_run
from rich.console import Console

import rtrain.cli
from rtrain.displays.history.comparison import comparison_lines
from rtrain.displays.history.report import run_report
from rtrain.displays.history.table import table_lines
from rtrain.displays.history.texts import show
from rtrain.displays.run import PlainDisplay
from rtrain.displays.run_live import LiveDisplay
from rtrain.displays.sweep_lines import PlainSweepDisplay
from rtrain.displays.sweep_live import LiveSweepDisplay
from rtrain.history.comparison import Comparison
from rtrain.history.index import read_row
from rtrain.process.terminal import say
from rtrain.runs.events import Event
from rtrain.searches.base import Objective
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.testing.workers import make_manifest
from rtrain.text.printable import printable

EVIL = "\x1b]0;owned\x07\x9b2J\r\x08\u202e\ud800[bold]x[/bold][link=file:///etc]y[/link] :smile:"
SPELLED = printable(EVIL)
FOLDER = Path("/runs") / EVIL


@pytest.fixture
def manifest():
    return make_manifest(
        run_name=EVIL,
        resources={"num_workers": 0},
        config={"trainer": {"type": EVIL}},
        dataset={"name": EVIL, "num_rows": {"train": 1}},
        timings_seconds={"total": 1.0},
        exit_reason=EVIL,
        status=EVIL,
        best={"monitor": EVIL, "value": 1.0, "epoch": 1, "step": 1},
        best_checkpoint=EVIL,
    )


@pytest.fixture
def record(tmp_path):
    found = SweepRecord(tmp_path, {"search": EVIL, "axes": []})
    found.goals = [Objective(metric=EVIL, mode="min")]
    given = {"point": (EVIL,), "overrides": [f"a={EVIL}"], "config_hash": "x", "values": [0.5]}
    error = {"type": EVIL, "message": EVIL}
    found.trials = [
        Trial(number=0, name=f"000-{EVIL}", status="running", **given),
        Trial(number=1, name=f"001-{EVIL}", status="failed", error=error, reason=EVIL, **given),
        Trial(number=2, name=f"002-{EVIL}", status="succeeded", **given),
    ]
    return found


def check(text):
    """Nothing but line ends is obeyed, and all is there."""
    assert SPELLED in text.replace("\n", "")
    assert {one for one in text if not one.isprintable()} <= {"\n"}
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text


def live(kind):
    return kind(Console(file=io.StringIO(), width=4000, force_terminal=False, color_system=None))


def watch_run(display, manifest):
    display.stage(EVIL)
    display.started(FOLDER, manifest)
    display.notice(EVIL)
    display.event(Event.at(1.0, step=1, epoch=1, metrics={f"val/{EVIL}": 1.0}))
    yield
    display.ended(FOLDER, manifest)
    yield


def watch_sweep(display, record):
    display.stage(EVIL)
    yield
    display.sweep_started(record, 3)
    display.notice(EVIL)
    for trial in record.trials:
        display.trial_changed(trial)
    yield
    display.sweep_ended(record)
    yield


def test_lines_of_a_run(manifest, capsys):
    for _ in watch_run(PlainDisplay(), manifest):
        told = capsys.readouterr()
        check(told.out)
    assert told.err == ""


def test_lines_of_a_sweep(record, capsys):
    _, *parts = watch_sweep(PlainSweepDisplay(), record)
    assert len(parts) == 2
    told = capsys.readouterr()
    check(told.out)
    check(told.err)


def test_the_live_display_of_a_run(manifest):
    display = live(LiveDisplay)
    for _ in watch_run(display, manifest):
        display._describe(EVIL, detail="")
        display._console.print(display._render())
        check(display._console.file.getvalue())


def test_the_live_display_of_a_sweep(record):
    display = live(LiveSweepDisplay)
    for _ in watch_sweep(display, record):
        display._console.print(display._render())
        check(display._console.file.getvalue())


@pytest.fixture
def evil_run(tmp_path):
    """A run that says what it wants, in a folder with an honest name."""
    made = {"run_name": EVIL, "command": [EVIL], "exit_reason": EVIL, "metrics": {EVIL: 1.0}, "values": {EVIL: EVIL}}
    frame = {"file": EVIL, "line": 1, "function": EVIL, "source": EVIL}
    error = {"type": EVIL, "message": EVIL, "rank": 0, "frames": {"lines": [frame], "causes": [EVIL], "more": 0}}
    best = {"monitor": EVIL, "mode": "min", "value": 1.0, "step": 1, "epoch": 1}
    config = {"trainer": {"type": EVIL, EVIL: EVIL}, "run": {"tags": [EVIL], "notes": EVIL}}
    where = {"host": {"hostname": EVIL}, "git": {"commit": EVIL}, "dataset": {"name": EVIL, "num_rows": {EVIL: 1}}}
    attempts = [{"started_at": EVIL, "ended_because": {"kind": EVIL, "message": EVIL}}]
    resumes = [{"time": EVIL, "command": [EVIL], "status": EVIL}]
    timings = {EVIL: 1.0}
    return make_run(
        *(tmp_path, "honest"),
        **{**made, "error": error, "best": best, "config": config, "status": EVIL, "resumes": resumes},
        **{**where, "attempts": attempts, "timings_seconds": timings, "versions": {EVIL: EVIL}, "parent_run": EVIL},
    )


def test_lists_reports_and_comparisons_of_runs(evil_run, tmp_path, capsys):
    other = make_run(tmp_path, "honest", "0a1c")
    rows = [read_row(evil_run), read_row(other)]
    for lines in (
        table_lines(rows, None, 4000, rows),
        table_lines(rows, "name,note,tags", 4000, rows),
        run_report(rows[0], 4000),
        comparison_lines(Comparison(rows), [EVIL], 4000),
    ):
        show(lines)
        text = capsys.readouterr().out
        assert SPELLED[:20] in text
        assert {one for one in text if not one.isprintable()} <= {"\n"}


def test_what_is_said(capsys):
    say(EVIL)
    say(EVIL, err=True)
    told = capsys.readouterr()
    check(told.out)
    check(told.err)


EXACT = {"scripts.py", "fit.py", "schema.py"}
"""They print what programs read, YAML and JSON, in which control characters are spelled by their own rules."""


@pytest.mark.parametrize("path", sorted(Path(rtrain.cli.__file__).parent.rglob("*.py")), ids=lambda path: path.name)
def test_commands_print_in_one_way(path):
    printing = {"echo", "secho", "print"}
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    for node in calls:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in printing and path.name not in EXACT:
            told = ast.unparse(node)
            assert "plain(" in told or "printable(" in told or "__version__" in told, f"{path.name}: {told}"
