"""One process at a time writes a run directory, whatever is forked, moved or removed meanwhile."""

import fcntl
import os
import signal
import threading

import pytest

from rtrain.errors import RunInUseError
from rtrain.runs.events import Event
from rtrain.runs.filesystem import lock as lock_module
from rtrain.runs.filesystem.lock import LOCK, is_locked, locked
from rtrain.runs.manifest import read_manifest
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.verify import verify_run
from rtrain.testing.workers import make_manifest


class Listener(SilentObserver):
    def __init__(self):
        self.heard = []

    def notice(self, text):
        self.heard.append(text)


@pytest.fixture
def fork():
    """Fork children that live until the test is over; return once they run."""
    children = []

    def make():
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writer, b".")
            signal.alarm(60)
            signal.pause()
            os._exit(0)
        children.append(pid)
        os.read(reader, 1)
        os.close(reader)
        os.close(writer)

    yield make
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_fork_that_outlives_the_run_does_not_hold_its_lock(tmp_path, fork):
    with locked(tmp_path):
        fork()
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def metrics(step):
    return Event.at(0.0, step=step, epoch=0, metrics={"loss": 1.0})


@pytest.fixture
def recording(tmp_path):
    """A recorder that holds the lock of its run, and who hears of it."""
    run_dir, listener = tmp_path / "run", Listener()
    (run_dir / ".hydra").mkdir(parents=True)
    (run_dir / ".hydra" / "overrides.yaml").write_text("- a=1\n")
    with locked(run_dir) as lock:
        recorder = Recorder(run_dir, make_manifest(), listener, config="a: 1\n", run_lock=lock)
        recorder.accept(metrics(5))
        yield recorder, listener


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("how", ["moved", "deleted", "lock"])
def test_a_run_holds_the_lock_of_the_directory_that_it_writes(recording, tmp_path, how):
    recorder, _ = recording
    if how == "moved":
        recorder.run_dir.rename(tmp_path / "moved")
    elif how == "deleted":
        for path in [*recorder.run_dir.rglob("*")][::-1]:
            path.rmdir() if path.is_dir() else path.unlink()
        recorder.run_dir.rmdir()
    else:
        (recorder.run_dir / LOCK).unlink()
    recorder.write()
    assert is_locked(recorder.run_dir)
    assert not (tmp_path / "moved").exists() or not is_locked(tmp_path / "moved")
    names = ("config.yaml", "manifest.json", "events.jsonl", "logs", "checkpoints")
    assert [name for name in names if not (recorder.run_dir / name).exists()] == []
    assert (recorder.run_dir / "config.yaml").read_text() == "a: 1\n"
    assert (recorder.run_dir / ".hydra" / "overrides.yaml").read_text() == "- a=1\n"


@pytest.mark.parametrize("how", ["moved", "lock"])
def test_a_run_whose_directory_another_process_has_taken_ends_and_writes_nothing(recording, tmp_path, how):
    recorder, _ = recording
    if how == "moved":
        recorder.run_dir.rename(tmp_path / "moved")
        recorder.run_dir.mkdir()
    else:
        (recorder.run_dir / LOCK).unlink()
    with locked(recorder.run_dir):
        before = contents(recorder.run_dir)
        for write in (recorder.write, recorder.close):
            with pytest.raises(RunInUseError, match=f"{recorder.run_dir} is in use by process {os.getpid()}"):
                write()
        assert contents(recorder.run_dir) == before


@pytest.mark.parametrize(
    ("name", "told"),
    [("events.jsonl", "created again, without earlier reports"), ("config.yaml", "created again")],
)
def test_a_file_that_is_deleted_is_named_and_reports_that_are_lost_are_found(recording, name, told):
    recorder, listener = recording
    (recorder.run_dir / name).unlink()
    recorder.write()
    recorder.accept(metrics(6))
    recorder.close()
    (text,) = listener.heard
    assert text.startswith(f"{recorder.run_dir / name} was deleted")
    assert text.endswith(told)
    lost = read_manifest(recorder.run_dir).events_lost_until
    found = [(one.problem, one.path.name, one.detail) for one in verify_run(recorder.run_dir)]
    if name == "events.jsonl":
        assert lost == 5
        assert found == [
            ("missing", "events.jsonl", "its reports up to step 5: the file was deleted or moved during training")
        ]
    else:
        assert lost is None
        assert found == []


def test_threads_and_locks_of_other_runs_are_no_matter(recording, tmp_path):
    recorder, _ = recording
    other = tmp_path / "other"
    other.mkdir()
    with locked(other):
        thread = threading.Thread(target=recorder.write)
        thread.start()
        thread.join()
        assert is_locked(other)
    assert is_locked(recorder.run_dir)


def test_a_process_that_only_asks_whether_a_run_is_locked_keeps_no_other_out(tmp_path, monkeypatch):
    (tmp_path / ".lock").touch()
    with (tmp_path / ".lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        monkeypatch.setattr(lock_module.time, "sleep", lambda _: fcntl.flock(asking, fcntl.LOCK_UN))
        with locked(tmp_path):
            assert is_locked(tmp_path)
