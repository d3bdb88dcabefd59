"""Each step of a run is read once, however often training did it."""

import random

import pytest

from rtrain.runs.events import Event, EventLog, events_file, read_events
from rtrain.tracking import position as module
from rtrain.tracking.position import Position, read_new


@pytest.mark.parametrize("seed", range(50))
def test_each_step_is_read_once(seed, tmp_path, monkeypatch):
    """Kills, repeated steps and evaluations that a kill left out, read at random moments."""
    monkeypatch.setattr(module, "MOST_BYTES", 400)
    draw, step, killed, found, position = random.Random(seed), 0, False, [], Position()
    log = EventLog(events_file(tmp_path))
    for _ in range(draw.randint(1, 40)):
        if killed:
            step = draw.randint(0, step - 1)
            log.go_back(step)
        step += 1
        log.append(Event.at(step, step=step, epoch=0, metrics={"loss": step / 7, "grad": step / 3}))
        killed = draw.random() < 0.2
        if step % 3 == 0 and not killed:
            log.append(Event.at(step, step=step, epoch=0, metrics={"val": step / 9}))
        if draw.random() < 0.5:
            events, position = read_new(events_file(tmp_path), position)
            found += events
    log.close()
    while True:
        events, after = read_new(events_file(tmp_path), position)
        found += events
        if after == position:
            break
        position = after
    points = [(name, event.step, value) for event in found for name, value in event.metrics.items()]
    assert len(points) == len(set(points))
    kept = {
        (name, event.step, value)
        for event in read_events(events_file(tmp_path))
        for name, value in event.metrics.items()
    }
    assert kept <= set(points)


def test_a_line_that_is_being_written_is_left_for_later(tmp_path):
    log = EventLog(events_file(tmp_path))
    log.append(Event.at(1, step=1, epoch=0, metrics={"loss": 1.0}))
    log.close()
    line = events_file(tmp_path).read_text()
    events_file(tmp_path).write_text(line + line[:20])
    events, position = read_new(events_file(tmp_path), Position())
    assert [event.step for event in events] == [1]
    assert position.offset == len(line)


def test_a_file_that_was_made_again_is_read_from_its_begin(tmp_path):
    log = EventLog(events_file(tmp_path))
    for step in (1, 2, 3):
        log.append(Event.at(step, step=step, epoch=0, metrics={"loss": 1.0}))
    log.close()
    _, position = read_new(events_file(tmp_path), Position())
    events_file(tmp_path).unlink()
    log = EventLog(events_file(tmp_path))
    for step in (3, 4):
        log.append(Event.at(step, step=step, epoch=0, metrics={"loss": 1.0}))
    log.close()
    events, _ = read_new(events_file(tmp_path), position)
    assert [event.step for event in events] == [4]
