"""Events that wait for a checkpoint are all there, in order, whatever is written and forgotten meanwhile."""

import random

import pytest

from rtrain.errors import CheckpointError
from rtrain.runs.events import events_file, read_events
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers import unsaved_events
from rtrain.trainers.unsaved_events import UnsavedEvents


@pytest.mark.parametrize("held_bytes", [40, 1 << 20])
@pytest.mark.parametrize("seed", range(5))
def test_lines_are_those_that_a_list_has(tmp_path, monkeypatch, held_bytes, seed):
    monkeypatch.setattr(unsaved_events, "HELD_BYTES", held_bytes)
    draw, kept, unsaved, dropped = random.Random(seed), [], UnsavedEvents(), 0
    for number in range(300):
        match draw.choice(["add", "add", "add", "write", "drop"]):
            case "add":
                kept.append(f"line {number} {chr(233) * draw.randrange(20)}\n")
                unsaved.add(kept[-1])
            case "write":
                taken = draw.randint(0, len(kept))
                end = dropped + len("".join(kept[:taken]).encode())
                file = tmp_path / f"{number}.jsonl"
                unsaved.write(file, end)
                assert (file.read_text() if file.exists() else "") == "".join(kept[:taken])
            case "drop":
                taken = draw.randint(0, len(kept))
                dropped += len("".join(kept[:taken]).encode())
                unsaved.drop(dropped)
                del kept[:taken]
        assert unsaved.end == dropped + len("".join(kept).encode())


def save(worker, step, write=lambda folder: None):
    """Write a checkpoint, and wait until it is there."""
    worker.save_checkpoint(lambda: write, step=step, epoch=0, metrics={}, score=None)
    worker.checkpoints.thread.wait()


def test_each_checkpoint_has_what_was_reported_since_the_one_before(tmp_path):
    channel = RecordingChannel()
    worker = make_worker(tmp_path, None, None, channel=channel)
    for step in range(1, 10):
        worker.report({"loss": 1 / step}, step=step, epoch=0)
        if step in (2, 3, 7):
            save(worker, step)
    folders = [tmp_path / "checkpoints" / f"epoch-0000-step-{step:08}" for step in (2, 3, 7)]
    found = [[event.step for event in read_events(events_file(folder))] for folder in folders]
    assert found == [[1, 2], [3], [4, 5, 6, 7]]


def test_a_checkpoint_that_cannot_be_written_leaves_them_to_the_next_one(tmp_path):
    worker = make_worker(tmp_path, None, None)

    def fail(folder):
        raise ValueError("no")

    worker.report({"loss": 1.0}, step=1, epoch=0)
    with pytest.raises(CheckpointError, match="no"):
        save(worker, 1, fail)
    worker.report({"loss": 0.5}, step=2, epoch=0)
    save(worker, 2)
    (folder,) = (tmp_path / "checkpoints").iterdir()
    assert [event.step for event in read_events(events_file(folder))] == [1, 2]
