"""Events are appended, survive a crash, and tell each step as it was done last."""

import os

import pytest

from rtrain.errors import TrainingError
from rtrain.runs.events import LINE_BYTES, Event, EventLog, damaged_lines, event_line, read_events
from rtrain.runs.logs import WorkerLogs
from rtrain.testing.workers import RecordingChannel, make_worker


def report(log, *steps):
    for step in steps:
        log.append(Event.at(0.0, step=step, epoch=0, metrics={"a": step}))


def steps(path):
    return [event.step for event in read_events(path)]


def test_steps_that_are_done_again_are_told_once(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10, 20, 30, 40)
    log.go_back(20)
    report(log, 30, 40, 50)
    log.go_back(40)
    report(log, 50, 60)
    log.close()
    assert steps(path) == [10, 20, 30, 40, 50, 60]
    assert len(path.read_text().splitlines()) == 11


def test_going_back_twice_to_an_earlier_step_drops_what_is_between(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10, 20, 30)
    log.go_back(20)
    report(log, 30)
    log.go_back(10)
    report(log, 20)
    log.close()
    assert steps(path) == [10, 20]


def test_a_torn_line_is_left_out_and_cut_off_when_the_run_goes_on(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    report(log, 10)
    log.close()
    with path.open("a") as file:
        file.write('{"step":20,"ep')
    assert steps(path) == [10]
    log = EventLog(path)
    report(log, 20)
    log.close()
    assert steps(path) == [10, 20]
    assert len(path.read_text().splitlines()) == 2


def sized(excess):
    """Return an event whose line has ``LINE_BYTES`` and so many more."""
    event = Event.at(0.0, step=1, epoch=0, metrics={}, values={"text": ""})
    rest = LINE_BYTES + excess - len(event_line(event))
    return Event.at(0.0, step=1, epoch=0, metrics={}, values={"text": "x" * rest})


def test_the_longest_line_that_is_written_is_read_back_and_a_longer_one_refused(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append(sized(0))
    with pytest.raises(TrainingError, match=r"1,048,577 bytes in events.jsonl, more than 1,048,576"):
        log.append(sized(1))
    log.close()
    assert len(list(read_events(path))) == 1
    assert list(damaged_lines(path)) == []


@pytest.mark.parametrize(
    "report",
    [
        {"metrics": {f"{number:050}": 1.0 for number in range(20_000)}},
        {"metrics": {}, "values": {str(number): "x" * 9_999 for number in range(150)}},
        {"metrics": {}, "values": {"text": "\u00e9" * (LINE_BYTES // 2)}},
    ],
    ids=["metrics", "texts", "escaped"],
)
def test_a_report_that_is_too_long_fails_where_it_is_made(tmp_path, report):
    channel = RecordingChannel()
    worker = make_worker(tmp_path, None, None, channel=channel)
    with pytest.raises(TrainingError, match="the report of step 7 takes"):
        worker.report(step=7, epoch=0, **report)
    assert channel.events == []
    assert worker.checkpoints.unsaved.end == 0


def test_a_copy_by_hard_links_stays_as_it_was(tmp_path):
    events, log = tmp_path / "events.jsonl", tmp_path / "logs" / "worker-0.log"
    log.parent.mkdir()
    snapshots = []
    for number, path in enumerate((events, log)):
        path.write_text('{"step":1,"epoch":0,"time":"","metrics":{}}\n{"torn')
        snapshots.append(tmp_path / f"snapshot-{number}")
        os.link(path, snapshots[-1])
    before = events.read_bytes()
    written = EventLog(events)
    report(written, 2)
    written.close()
    logs = WorkerLogs(log.parent)
    logs.append(0, "line\n")
    logs.close()
    assert [path.read_bytes() for path in snapshots] == [before, before]
    assert steps(events) == [1, 2]
    assert log.read_bytes() == before + b"line\n"
