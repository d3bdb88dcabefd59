"""What the driver writes, and what it tells whoever watches."""

import math
import os
import shutil
from dataclasses import replace

import pytest

from rtrain.errors import RunDirError
from rtrain.runs import logs
from rtrain.runs.checkpoints import checkpoint_dir, checkpoints_dir, write_checkpoint
from rtrain.runs.events import Event
from rtrain.runs.filesystem.files import unwritable
from rtrain.runs.filesystem.leftovers import clear_leftovers
from rtrain.runs.logs import MOST_OPEN
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import AttemptRecord, LogRecord, NoticeRecord, ProgressRecord
from rtrain.testing.workers import make_manifest

METRICS = Event.at(0.0, step=1, epoch=0, metrics={"train/loss": 1.0})
PROGRESS = ProgressRecord(step=1, epoch=0, steps_per_epoch=None, rows=1)
LOG = LogRecord(rank=0, text="line")
NOTICE = NoticeRecord(text="note")


class Broken:
    """A display whose terminal is gone."""

    def __getattr__(self, name):
        def fail(*_):
            raise BrokenPipeError(32, "Broken pipe")

        return fail


@pytest.mark.parametrize("record", [METRICS, PROGRESS, NOTICE], ids=lambda record: type(record).__name__)
def test_an_error_of_whoever_watches_is_none_of_the_run_directory(tmp_path, record):
    recorder = Recorder(tmp_path, make_manifest(), Broken())
    with pytest.raises(BrokenPipeError):
        recorder.accept(record)
    recorder.close()
    assert METRICS is not record or (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_an_error_of_the_run_directory_names_it(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder._events, "append", full)
    with pytest.raises(RunDirError, match=str(tmp_path)):
        recorder.accept(METRICS)
    recorder.close()


@pytest.mark.parametrize("is_run", [True, False])
def test_a_folder_that_can_not_be_written_is_to_be_resumed_only_if_it_is_a_run(tmp_path, is_run):
    if is_run:
        make_manifest().write(tmp_path)
    error = unwritable(tmp_path, OSError(28, "No space left on device"))
    assert "No space left" in error.message
    assert (f"rtrain resume {tmp_path}" in error.hint) == is_run
    assert "run.root_dir" in error.hint


@pytest.mark.parametrize("times", [1, 3, 9])
def test_a_run_directory_that_disappears_while_its_manifest_is_written_is_made_again(tmp_path, monkeypatch, times):
    run_dir, manifest, left = tmp_path / "run", make_manifest(), [times]
    run_dir.mkdir()
    recorder = Recorder(run_dir, manifest, SilentObserver(), config="a: 1")
    write = type(manifest).write

    def vanishing(self, folder):
        if left[0]:
            left[0] -= 1
            shutil.rmtree(run_dir)
        write(self, folder)

    monkeypatch.setattr(type(manifest), "write", vanishing)
    if times == 9:
        with pytest.raises(RunDirError, match="No such file"):
            recorder.write()
        run_dir.mkdir(exist_ok=True)
    else:
        recorder.write()
    left[0] = 0
    recorder.close()
    assert {"manifest.json", "config.yaml", "events.jsonl"} <= {path.name for path in run_dir.iterdir()}


def test_a_name_has_its_newest_value_alone_whether_that_is_a_number_or_not(tmp_path):
    recorder = Recorder(tmp_path, manifest := make_manifest(), SilentObserver())
    reports = [({"loss": math.nan, "a": 1.0}, {}), ({}, {"loss": "none", "a": None}), ({"a": 2.0}, {})]
    for step, (metrics, values) in enumerate(reports):
        recorder.accept(replace(METRICS, step=step, metrics=metrics, values=values))
    recorder.close()
    assert (manifest.metrics, manifest.values) == ({"a": 2.0}, {"loss": "none"})


def test_a_checkpoint_whose_worker_was_killed_before_it_was_listed_is_listed_by_the_next_attempt(tmp_path):
    recorder = Recorder(tmp_path, manifest := make_manifest(), SilentObserver())
    recorder.accept(AttemptRecord(num_workers=2, from_checkpoint=None, from_step=0))
    score = {"monitor": "val/loss", "mode": "min", "value": 0.5}
    target = checkpoint_dir(tmp_path, step=4, epoch=1)
    record = write_checkpoint(target, lambda _: None, {"step": 4, "epoch": 1, "metrics": {}, "score": score})
    recorder.accept(AttemptRecord(num_workers=2, from_checkpoint=target.name, from_step=4))
    recorder.close()
    assert manifest.checkpoints == [record]
    assert manifest.best == {"step": 4, "epoch": 1, **score}


@pytest.mark.parametrize("record", [METRICS, LOG], ids=lambda record: type(record).__name__)
def test_what_comes_after_the_end_is_ignored(tmp_path, record, caplog):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    recorder.close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    recorder.accept(record)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    told = [] if record is LOG else [f"{tmp_path} has ended; a late {type(record).__name__} is ignored"]  # it was shown
    assert caplog.messages == told


def test_what_hundreds_of_workers_print_is_in_their_files_at_once_with_few_files_open(tmp_path):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    for line in range(2):
        for rank in range(5 * MOST_OPEN):
            recorder.accept(LogRecord(rank=rank, text=f"{line}\n"))
    assert len(os.listdir("/dev/fd")) <= before + MOST_OPEN  # noqa: PTH208
    for rank in range(5 * MOST_OPEN):
        assert (tmp_path / "logs" / f"worker-{rank}.log").read_text() == "0\n1\n"
    recorder.close()
    assert len(os.listdir("/dev/fd")) < before  # noqa: PTH208


def test_a_worker_that_prints_much_opens_its_file_once(tmp_path, monkeypatch):
    """To open it for each line makes a million lines take minutes."""
    opened, open_inside = [], logs.open_inside

    def note(root, name, *args, **keys):
        opened.append(name)
        return open_inside(root, name, *args, **keys)

    monkeypatch.setattr(logs, "open_inside", note)
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    for line in range(100):
        recorder.accept(LogRecord(rank=0, text=f"{line}\n"))
    recorder.close()
    assert opened == ["logs/worker-0.log"]


def test_a_log_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "run").mkdir()
    recorder = Recorder(tmp_path / "run", make_manifest(), SilentObserver())
    (tmp_path / "run" / "logs" / "worker-0.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunDirError):
        recorder.accept(LogRecord(rank=0, text="line\n"))
    recorder.close()
    assert not (tmp_path / "elsewhere").exists()


LEFT = (
    ".manifest.json.11078-193435.tmp",
    ".config.yaml.1-0a0b0c.tmp",
    "checkpoints/.epoch-0001-step-00000010-df220f.tmp/model.safetensors",
    "checkpoints/.epoch-0001-step-00000010.tmp/model.safetensors",
    "checkpoints/.epoch-0000-step-00000005-df220f.old/model.safetensors",
    "checkpoints/.reached-0a1b",
)
STAYS = (
    ".report.html.11078-193435.tmp",
    ".predictions.parquet-0a0b0c.tmp",
    "notes.tmp",
    "checkpoints/.damaged-epoch-0001-step-00000010/model.safetensors",
    "checkpoints/epoch-0001-step-00000010/model.safetensors",
)


def leave(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


@pytest.mark.parametrize("moment", ["start", "success"])
def test_what_killed_processes_left_half_written_goes_and_nothing_else(tmp_path, moment):
    if moment == "start":
        leave(tmp_path, (*LEFT, *STAYS))
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    if moment == "success":
        leave(tmp_path, (*LEFT, *STAYS))
        recorder.manifest.status = "succeeded"
    recorder.close()
    assert [name for name in LEFT if (tmp_path / name).exists()] == []
    assert [name for name in STAYS if not (tmp_path / name).exists()] == []


def test_a_run_that_did_not_succeed_leaves_what_its_workers_may_be_writing(tmp_path):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver())
    leave(tmp_path, LEFT)
    recorder.manifest.status = "failed"
    recorder.close()
    assert all((tmp_path / name).exists() for name in LEFT)


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path):
    leave(tmp_path / "elsewhere", ["model.safetensors"])
    checkpoints_dir(tmp_path / "run").mkdir(parents=True)
    (checkpoints_dir(tmp_path / "run") / ".epoch-0001-step-00000010.tmp").symlink_to(tmp_path / "elsewhere")
    clear_leftovers(tmp_path / "run")
    assert list(checkpoints_dir(tmp_path / "run").iterdir()) == []
    assert (tmp_path / "elsewhere" / "model.safetensors").exists()
