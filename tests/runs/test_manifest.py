import json
import os
from pathlib import Path

import pytest
from made_runs import write_events
from pydantic import TypeAdapter

from rtrain.errors import RtrainError
from rtrain.runs.events import Event, EventLog, read_events
from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import AttemptRecord, CheckpointRecord, LogRecord
from rtrain.runs.run import Run
from rtrain.testing.workers import make_manifest


def a_manifest():
    return make_manifest(run_id="r1")


class Watcher:
    def __init__(self):
        self.events = []

    def event(self, event):
        self.events.append(event)

    def progress(self, record):
        self.events.append(record)


def checkpoint(step, loss):
    score = {"monitor": "val/loss", "mode": "min", "value": loss}
    facts = {"name": f"c{step}", "step": step, "epoch": 0, "metrics": {"val/loss": loss}, "score": score, "files": {}}
    return CheckpointRecord(entry=facts)


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path, a_manifest(), Watcher())
    yield recorder
    recorder.close()


def test_manifest_is_on_disk_from_the_start(recorder, tmp_path):
    assert read_manifest(tmp_path).status == "running"


def test_metrics_reach_events_manifest_and_observer(recorder, tmp_path):
    recorder.accept(Event.at(0.0, step=3, epoch=1, metrics={"train/loss": 0.5}))
    recorder.close()
    (event,) = read_events(tmp_path / "events.jsonl")
    assert (event.step, event.epoch, event.metrics) == (3, 1, {"train/loss": 0.5})
    assert event.time == "1970-01-01T00:00:00.000+00:00"
    assert read_manifest(tmp_path).metrics == {"train/loss": 0.5}
    assert recorder.observer.events == [event]


def test_the_best_checkpoint_is_noted_and_stays(recorder, tmp_path):
    for step, loss in ((1, 0.9), (2, 0.5), (3, 0.7)):
        (tmp_path / "checkpoints" / f"c{step}").mkdir()
        recorder.accept(checkpoint(step, loss))
    manifest = read_manifest(tmp_path)
    assert manifest.best == {"monitor": "val/loss", "mode": "min", "value": 0.5, "step": 2, "epoch": 0}
    assert manifest.best_checkpoint == "checkpoints/c2"
    assert [one["name"] for one in manifest.checkpoints] == ["c2", "c3"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["c2", "c3"]


def test_a_checkpoint_that_a_killed_driver_did_not_list_is_listed_by_the_next(recorder, tmp_path):
    recorder.close()
    folder = tmp_path / "checkpoints" / "c7"
    folder.mkdir()
    record = dict(checkpoint(7, 0.2).entry)
    (folder / "checkpoint.json").write_text(json.dumps(record))
    Recorder(tmp_path, a_manifest(), Watcher()).close()
    manifest = read_manifest(tmp_path)
    assert (manifest.checkpoints, manifest.best_checkpoint) == ([record], "checkpoints/c7")


def test_reports_that_no_driver_lived_to_write_come_from_the_checkpoints(tmp_path):
    events = {step: Event.at(step, step=step, epoch=0, metrics={"a": step}) for step in (1, 2, 3, 4)}
    recorder = Recorder(tmp_path, a_manifest(), Watcher())
    recorder.accept(AttemptRecord(num_workers=0, from_step=0))
    recorder.accept(Event.at(1, step=1, epoch=0, metrics={"a": 1}))
    recorder.close()
    for step in (2, 4):
        folder = tmp_path / "checkpoints" / f"c{step}"
        folder.mkdir()
        record = dict(checkpoint(step, 0.2).entry)
        (folder / "checkpoint.json").write_text(json.dumps(record))
        write_events(folder / "events.jsonl", [events[step - 1], events[step]])
    again = Recorder(tmp_path, read_manifest(tmp_path), Watcher())
    again.accept(AttemptRecord(num_workers=0, from_step=4))
    again.close()
    run = Run.load(tmp_path)
    assert list(run.events()) == list(events.values())
    assert run.metrics == {"a": 4}


def test_logs_are_kept_by_rank(recorder, tmp_path):
    recorder.accept(LogRecord(rank=1, text="hello\n"))
    assert (tmp_path / "logs" / "worker-1.log").read_text() == "hello\n"


def test_a_line_that_is_being_written_is_left_for_later(tmp_path):
    log = EventLog(tmp_path / "events.jsonl")
    log.append(Event(step=1, epoch=0, time="t", metrics={"a": 1.0}))
    log.close()
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"step":2,"ep')
    assert [event.step for event in read_events(tmp_path / "events.jsonl")] == [1]


def test_replacing_a_file_leaves_no_temporary_one(tmp_path):
    for text in ("one", "two"):
        write_atomic(tmp_path / "f", text)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("f", "two")]


def test_what_is_no_number_is_null_in_strict_json(recorder, tmp_path):
    metrics = {"loss": float("nan"), "best": float("inf"), "ok": 1.0}
    recorder.accept(Event.at(1.0, step=1, epoch=0, metrics=metrics))
    recorder.close()

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    for name in ("manifest.json", "events.jsonl"):
        found = json.loads((tmp_path / name).read_text(), parse_constant=refuse)
        assert found["metrics"] == {"loss": None, "best": None, "ok": 1.0}


def test_unknown_keys_of_a_newer_manifest_are_left_out(tmp_path):
    a_manifest().write(tmp_path)
    stored = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**stored, "from_the_future": 1}))
    assert read_manifest(tmp_path).run_id == "r1"


def test_a_folder_that_is_no_run_is_a_clear_error(tmp_path):
    with pytest.raises(RtrainError, match="is not a run directory"):
        Run.load(tmp_path)


def test_run_reads_what_the_recorder_wrote(recorder, tmp_path):
    (tmp_path / "checkpoints" / "c1").mkdir()
    recorder.accept(checkpoint(1, 0.1))
    recorder.accept(Event.at(1.0, step=1, epoch=0, metrics={"val/loss": 0.1}))
    recorder.close()
    run = Run.load(os.fspath(tmp_path))
    assert run.metrics == {"val/loss": 0.1}
    assert run.best_checkpoint == tmp_path / "checkpoints" / "c1"
    assert [event.step for event in run.events()] == [1]


def test_the_published_schema_is_that_of_the_manifest():
    published = Path(__file__).parents[2] / "docs" / "manifest.schema.json"
    schema = TypeAdapter(Manifest).json_schema()
    if os.environ.get("RTRAIN_UPDATE_SCHEMA"):
        published.write_text(json.dumps(schema, indent=2) + "\n")
    assert json.loads(published.read_text()) == schema


@pytest.mark.parametrize("place", ["runs/a", "a", "runs/a/2026", "b", "runs/b"])
def test_a_path_that_is_no_run_leads_to_the_newest_run_near(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("old", "new")):
        run = Path("runs/a") / name
        run.mkdir(parents=True)
        a_manifest().write(run)
        os.utime(run / "manifest.json", (number, number))
    with pytest.raises(RtrainError, match="is not a run directory") as caught:
        read_manifest(Path(place))
    assert caught.value.hint.endswith(": runs/a/new")
