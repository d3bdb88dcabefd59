"""The folder of a sweep belongs to one process at a time, whichever way processes meet there."""

import os
import threading

import pytest

from rtrain.errors import RunInUseError
from rtrain.runs.filesystem.files import SWEEP as RECORD
from rtrain.runs.filesystem.lock import LOCK, locked
from rtrain.sweeps.record.folder import opened


def test_whoever_is_refused_leaves_the_folder_to_the_other(tmp_path):
    folder = tmp_path / "runs" / "sweep"
    with opened(folder):
        with pytest.raises(RunInUseError), opened(folder):
            pass
        assert [one.name for one in folder.iterdir()] == [LOCK]
        with pytest.raises(RunInUseError), opened(folder):
            pass
    assert not folder.exists()


def test_a_folder_with_something_in_it_stays(tmp_path):
    for name in (RECORD, "trial_0"):
        folder = tmp_path / name
        with opened(folder):
            (folder / name).touch()
        assert (folder / name).exists()


def test_many_at_once_never_share_a_folder(tmp_path):
    folder, inside, outcomes = tmp_path / "sweep", threading.Semaphore(1), []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(100):
            try:
                with opened(folder):
                    alone = inside.acquire(blocking=False)
                    outcomes.append("alone" if alone and (folder / LOCK).exists() else "shared")
                    if alone:
                        inside.release()
            except RunInUseError:
                outcomes.append("refused")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert "shared" not in outcomes
    assert "alone" in outcomes
    assert len(outcomes) == 800
    assert not folder.exists()


def test_a_lock_that_was_removed_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.runs.filesystem.lock.fcntl.flock", lambda file, how: (tmp_path / LOCK).unlink())
    with pytest.raises(FileNotFoundError), locked(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["file", "dangling link", "pipe"])
def test_something_else_in_the_place_of_the_folder_ends_the_wait(tmp_path, kind):
    place = tmp_path / "sweep"
    if kind == "file":
        place.touch()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="sweep"), opened(place):
        pass
