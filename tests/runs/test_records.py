"""What processes of a run tell each other: it arrives as it was sent, and somebody takes it."""

import dataclasses
import re
from pathlib import Path

import pytest

from rtrain.runs.events import Event
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import (
    AttemptFailedRecord,
    AttemptRecord,
    CheckpointRecord,
    EndRecord,
    FailureKind,
    FailureRecord,
    LogRecord,
    ModelRecord,
    NoticeRecord,
    ProgressRecord,
    Record,
    RunRecord,
    TrialBeganRecord,
    TrialDoneRecord,
    TrialOutputRecord,
    TrialOverRecord,
    WorkerFailure,
    WorkerRecord,
    from_wire,
    to_wire,
)
from rtrain.testing.workers import make_manifest

DOCS = Path(__file__).parents[2] / "docs"
CHECKPOINT = {"name": "epoch-0001-step-00000004", "step": 4, "epoch": 1, "metrics": {}, "score": None, "files": {}}
FAILED = WorkerFailure(rank=1, type="E", message="m", kind=FailureKind.NODE_LOST)
EXAMPLES = [
    Event.at(1.0, step=1, epoch=0, metrics={"a": 0.1}, values={"b": ["c", None]}),
    ProgressRecord(step=1, epoch=0, steps_per_epoch=None, rows=3),
    WorkerRecord(rank=0, facts={"host": "a"}),
    ModelRecord(facts={"num_trees": 3}),
    FailureRecord(rank=1, type="E", message="m", time=1.5, traceback="t", bug=True, frames={"lines": []}),
    AttemptRecord(num_workers=2, from_step=4, from_checkpoint="c"),
    NoticeRecord(text="ünïcode\n"),
    EndRecord(reason="max_epochs"),
    CheckpointRecord(entry=CHECKPOINT),
    LogRecord(rank=0, text="\x1b[1m\udc80"),
    AttemptFailedRecord(kind=FailureKind.EXCEPTION, message="m", workers=[FAILED], nodes=["n"], oom_kills=1),
    TrialBeganRecord(),
    TrialOutputRecord(text="one\ntwo"),
    TrialOverRecord(status="succeeded", reason=None, lacks_copy=False, best={"value": 1}),
    TrialDoneRecord(error={"type": "E", "message": "m"}),
]


def test_there_is_an_example_of_each_record():
    assert {type(one) for one in EXAMPLES} == set(Record.__args__)


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_arrives_as_it_was_sent(record):
    (arrived,) = from_wire(to_wire([record]))
    assert arrived == record
    assert type(arrived) is type(record)


def test_kinds_of_failures_arrive_as_kinds():
    (arrived,) = from_wire(to_wire([one for one in EXAMPLES if isinstance(one, AttemptFailedRecord)]))
    assert isinstance(arrived.kind, FailureKind)
    assert isinstance(arrived.workers[0].kind, FailureKind)


@pytest.mark.parametrize("kind", RunRecord.__args__)
def test_the_recorder_takes_each_record_of_a_run(kind, tmp_path):
    """One that it does not know would leave no trace."""

    class Watcher(SilentObserver):
        def __getattribute__(self, name):
            if name in ("notice", "event", "progress"):
                told.append(name)
            return super().__getattribute__(name)

    told: list[str] = []
    recorder = Recorder(tmp_path, manifest := make_manifest(), Watcher())
    (tmp_path / "checkpoints" / CHECKPOINT["name"]).mkdir()
    before = dataclasses.asdict(manifest)
    recorder.accept(next(one for one in EXAMPLES if type(one) is kind))
    recorder.close()
    logs = [path.name for path in (tmp_path / "logs").iterdir()]
    assert told or logs or recorder.failures or dataclasses.asdict(manifest) != before


def test_the_docs_list_each_kind_of_failure():
    table = (DOCS / "reliability.md").read_text().partition("| kind | what happened |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([\w ]+)` \|", table, re.MULTILINE)) == sorted(FailureKind)


def test_a_log_takes_the_name_of_a_file_that_is_no_utf_8(tmp_path):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    recorder.accept(LogRecord(rank=0, text="no file b\udce4r.csv\n"))
    recorder.close()
    assert (tmp_path / "logs" / "worker-0.log").read_text() == "no file b\\udce4r.csv\n"
