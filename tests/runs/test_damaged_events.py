"""Damaged bytes in ``events.jsonl`` cost their own lines alone; ``verify`` names these, and every run goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made_runs import write_events

import rtrain
from rtrain.cli.app import run as command
from rtrain.runs import events as module
from rtrain.runs.events import Event, EventLog, damaged_lines, newest_first, read_events
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import AttemptRecord
from rtrain.runs.run import Run
from rtrain.runs.verify import MOST_LINES, verify_run
from rtrain.testing.workers import make_manifest

DAMAGES = {
    "no UTF-8": b"\xff\xfe\x00",
    "in the middle": b'{"step":3,"epoch":0,"time":"t","metrics":{"lo\xffss":1.0}}',
    "a number": b"5",
    "an empty mapping": b"{}",
    "a list": b"[1]",
    "a text": b'"from_step"',
    "null": b"null",
    "nested": b"[" * 100_000,
    "nested, and whole": b'{"step":1,"epoch":0,"time":"t","metrics":' + b"[" * 300 + b"]" * 300 + b"}",
    "NULs": b"\0" * 4096,
    "torn": b'{"step":3,"epo',
    "long": b"x" * (module.LINE_BYTES + 1),
    "long, and whole": b'{"step":1,"epoch":0,"time":"' + b"t" * module.LINE_BYTES + b'","metrics":{}}',
    "longer than blocks": b"x" * (3 * module.BLOCK_BYTES),
    "another type": b'{"step":"x","epoch":0,"time":"t","metrics":{}}',
    "metrics of another type": b'{"step":3,"epoch":0,"time":"t","metrics":[1]}',
    "a metric of another type": b'{"step":3,"epoch":0,"time":"t","metrics":{"a":{}}}',
    "an endless step": b'{"step":1e999,"epoch":0,"time":"t","metrics":{}}',
    "no step to go back to": b'{"from_step":null}',
    "a number of 10,000 digits": b'{"from_step":' + b"9" * 10_000 + b"}",
}


def event(step: int) -> Event:
    return Event.at(float(step), step=step, epoch=0, metrics={"loss": 1.0})


def spoil(path: Path, damage: bytes, at: int = 2) -> None:
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:at], damage, *lines[at:]]))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_other_lines_are_read_and_the_damaged_one_is_named(tmp_path, damage):
    path = tmp_path / "events.jsonl"
    write_events(path, map(event, range(5)))
    spoil(path, damage)
    assert [one.step for one in read_events(path)] == list(range(5))
    assert list(damaged_lines(path)) == [3]
    log = EventLog(path)
    log.append(event(5))
    log.close()
    assert [one.step for one in read_events(path)] == list(range(6))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_recorder_goes_on_and_verify_tells(tmp_path, damage, capsys):
    Recorder(tmp_path, make_manifest(run_id="run"), SilentObserver(), config="").close()
    write_events(tmp_path / "events.jsonl", map(event, range(3)))
    spoil(tmp_path / "events.jsonl", damage)
    recorder = Recorder(tmp_path, make_manifest(run_id="run", attempts=[{}]), SilentObserver(), config="")
    recorder.accept(AttemptRecord(num_workers=0, from_step=1))
    recorder.accept(Event.at(9.0, step=2, epoch=0, metrics={}))
    recorder.close()
    assert [one.step for one in Run.load(tmp_path).events()] == [0, 1, 2]
    assert command(["runs", "verify", str(tmp_path)]) == 1
    assert "line 3 " in capsys.readouterr().out


def test_of_many_damaged_lines_some_are_named(tmp_path):
    Recorder(tmp_path, make_manifest(run_id="run"), SilentObserver(), config="").close()
    (tmp_path / "events.jsonl").write_bytes(b"5\n" * (10 * MOST_LINES))
    assert len(verify_run(tmp_path)) == MOST_LINES + 1


@pytest.mark.parametrize("size", [1, 7, 100])
def test_lines_are_found_however_blocks_cut_them(tmp_path, monkeypatch, size):
    monkeypatch.setattr(module, "BLOCK_BYTES", size)
    path = tmp_path / "events.jsonl"
    write_events(path, map(event, range(5)))
    with path.open("ab") as file:
        file.write(b'\n{"step":')
    assert [one.step for one in read_events(path)] == list(range(5))
    EventLog(path).close()
    assert path.read_bytes().endswith(b"}}\n\n")
    assert [one.step for one in read_events(path)] == list(range(5))


def test_a_run_that_goes_on_reads_the_end_of_its_events_alone(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    write_events(path, map(event, range(2000)))
    monkeypatch.setattr(module, "BLOCK_BYTES", 1000)
    seen = []
    parse = module.parse_line
    monkeypatch.setattr(module, "parse_line", lambda line: seen.append(line) or parse(line))
    assert next(newest_first(path)).step == 1999
    assert len(seen) == 1
    recorder = Recorder(tmp_path, make_manifest(run_id="run", attempts=[{}]), SilentObserver(), config="")
    recorder.accept(AttemptRecord(num_workers=0, from_step=1990))
    recorder.close()
    assert len(seen) < 50


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    words = [
        "dataset=synthetic",
        "dataset.num_rows=64",
        "num_workers=0",
        "trainer.max_epochs=1",
        "run.log_every_steps=1",
    ]
    return rtrain.fit("mlp", [*words, "run.log_every_steps=1", f"run.root_dir={folder}"])


@pytest.mark.parametrize("where", ["run", "checkpoint"])
def test_a_training_goes_on_and_is_evaluated(trained, tmp_path, where):
    run = shutil.copytree(trained.path, tmp_path / "runs" / "mlp" / trained.path.name)
    steps = [one.step for one in read_events(run / "events.jsonl")]
    if where == "run":
        spoil(run / "events.jsonl", b"\n".join(DAMAGES.values()), 1)
    else:
        (folder,) = (run / "checkpoints").iterdir()
        spoil(folder / "events.jsonl", b"\n".join(DAMAGES.values()), 1)
        record = json.loads((folder / "checkpoint.json").read_text())
        record["files"].pop("events.jsonl")
        (folder / "checkpoint.json").write_text(json.dumps(record))
    assert rtrain.evaluate(run)
    done = rtrain.resume(run, ["trainer.max_epochs=2"])
    assert done.status == "succeeded"
    assert [one.step for one in done.events()][: len(steps)] == steps
