"""A run is watched from its run directory."""

from __future__ import annotations

from made_runs import NOON, make_run

from rtrain.history.running.watching import MOST_BEFORE, WatchedHere, watch
from rtrain.runs.events import Event, event_line
from rtrain.runs.filesystem.lock import Lock
from rtrain.runs.manifest import read_manifest


class Watcher:
    def __init__(self):
        self.seen = []

    def started(self, run_dir, manifest):
        self.seen.append(("started", manifest.run_id))

    def event(self, event):
        self.seen.append(("event", event.step))

    def ended(self, run_dir, manifest):
        self.seen.append(("ended", manifest.status))


def line(step):
    return event_line(Event(step=step, epoch=step, time=f"{NOON.isoformat()}{step}", metrics={"val/loss": 1.0}))


def test_a_run_that_is_over_is_shown_and_left(project):
    run, watcher = make_run(project / "runs", losses=(0.3, 0.2)), Watcher()
    assert watch(WatchedHere(run), watcher)
    assert watcher.seen == [("started", run.name), ("event", 10), ("event", 20), ("ended", "succeeded")]


def test_reports_are_shown_as_they_are_written_until_the_run_is_over(project):
    run, watcher = make_run(project / "runs", losses=(0.3,), status="running"), Watcher()
    lock, path = Lock(run), run / "events.jsonl"
    parts = [line(20), line(30)[:10], line(30)[10:] + '{"from_step":20,"time":"x"}\n' + line(30)]

    def wait(seconds):
        if parts:
            with path.open("a") as file:
                file.write(parts.pop(0))
            return
        manifest = read_manifest(run)
        manifest.status = "succeeded"
        manifest.write(run)
        lock.close()

    assert watch(WatchedHere(run), watcher, wait)
    assert watcher.seen[1:] == [("event", step) for step in (10, 20, 30, 30)] + [("ended", "succeeded")]


def test_a_run_whose_process_is_gone_could_not_say_how_it_ended(project):
    run, watcher = make_run(project / "runs", status="running"), Watcher()
    assert not watch(WatchedHere(run), watcher)
    assert watcher.seen[-1] == ("event", 30)


def test_of_a_long_run_the_latest_reports_are_shown_first(project):
    run, watcher = make_run(project / "runs", losses=tuple(1.0 for _ in range(50))), Watcher()
    watch(WatchedHere(run), watcher)
    assert [step for kind, step in watcher.seen if kind == "event"] == [10 * n for n in range(51 - MOST_BEFORE, 51)]
