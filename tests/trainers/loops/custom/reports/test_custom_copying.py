"""Folders that a loop reports as its checkpoint: any file name is copied, and what is no checkpoint leaves nothing."""

import os
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.train import Checkpoint

from rtrain.errors import CheckpointError, RtrainError, TrainingError
from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint, read_record
from rtrain.testing.workers import make_worker
from rtrain.trainers.loops.custom.reports.train_fn_utils import LocalReports
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.trained import FILE_NAME


@pytest.fixture
def reports(tmp_path):
    return LocalReports(make_worker(tmp_path / "run", Conf(train_loop="a:b"), None))


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    (folder / "inner").mkdir(parents=True)
    (folder / "state").write_text("1")
    return folder


def _left(reports):
    return list(checkpoints_dir(reports.worker.run_dir).iterdir())


def test_names_as_long_as_a_file_system_allows_are_copied(reports, own):
    names = {"x" * 250, "y" * 255, "ü" * 127, "state", "inner/" + "z" * 255}
    for name in names:
        (own / name).write_text("1")
    reports.report({}, Checkpoint(str(own)))
    assert set(read_record(latest_checkpoint(reports.worker.run_dir))["files"]) - {FILE_NAME} == names


def test_links_to_files_and_folders_are_followed(reports, own, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("1")
    (own / "one").symlink_to(tmp_path / "elsewhere")
    (own / "inner" / "two").symlink_to(tmp_path / "elsewhere" / "file")
    reports.report({}, Checkpoint(str(own)))
    assert set(read_record(latest_checkpoint(reports.worker.run_dir))["files"]) - {FILE_NAME} == {
        "state",
        "one/file",
        "inner/two",
    }


def _bind(path):
    listener = socket.socket(socket.AF_UNIX)
    with pytest.MonkeyPatch.context() as patch:  # the path of a socket is short
        patch.chdir(path.parent)
        listener.bind(path.name)
    listener.close()


STRANGE = {
    "pipe": (os.mkfifo, TrainingError),
    "socket": (_bind, TrainingError),
    "cycle": (lambda path: path.symlink_to(".."), TrainingError),
    "dangling": (lambda path: path.symlink_to("nowhere"), CheckpointError),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_of_a_checkpoint_is_named_and_nothing_is_copied(reports, own, kind):
    make, error = STRANGE[kind]
    make(own / "inner" / "strange")
    with pytest.raises(error) as raised:
        reports.report({}, Checkpoint(str(own)))
    assert str(own) in raised.value.message
    assert "inner/strange" in raised.value.message
    assert _left(reports) == []


def test_a_checkpoint_that_is_larger_than_the_disk_is_told_before_it_is_copied(reports, own, monkeypatch):
    full = SimpleNamespace(free=0)
    monkeypatch.setattr("rtrain.trainers.loops.custom.reports.copying.shutil.disk_usage", lambda _: full)
    with pytest.raises(CheckpointError, match=r"1 files, and .* has space for 0\.0 GB"):
        reports.report({}, Checkpoint(str(own)))
    assert _left(reports) == []


def test_a_file_that_can_not_be_read_is_named_and_nothing_is_copied(reports, own, monkeypatch):
    (own / "inner" / "private").write_text("1")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "private" and access(path, mode))
    with pytest.raises(CheckpointError, match="inner/private: Permission denied"):
        reports.report({}, Checkpoint(str(own)))
    assert _left(reports) == []


def test_a_disk_that_is_full_halfway_leaves_nothing(reports, own, monkeypatch):
    def copy(source, part):
        Path(part).write_text("1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rtrain.trainers.loops.custom.reports.copying.shutil.copy", copy)
    with pytest.raises(CheckpointError, match=r"own/state: No space left"):
        reports.report({}, Checkpoint(str(own)))
    assert _left(reports) == []


@pytest.mark.parametrize("place", ["run", "checkpoints", "outer", "root", "temporary", "home"])
def test_a_folder_that_others_share_is_no_checkpoint(reports, own, tmp_path, monkeypatch, place):
    run_dir = reports.worker.run_dir
    places = {"run": run_dir, "checkpoints": checkpoints_dir(run_dir), "outer": run_dir.parent, "root": Path("/")}
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    monkeypatch.setenv("HOME", str(own / "inner"))
    with pytest.raises(TrainingError, match="is or contains"):
        reports.report({}, Checkpoint(str(places.get(place, own / "inner" if place == "home" else own))))
    assert _left(reports) == []


def test_a_function_of_the_users_that_fails_leaves_nothing(reports, own):
    def upload(checkpoint, name):
        (checkpoints_dir(reports.worker.run_dir) / name).mkdir()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        reports.report({}, Checkpoint(str(own)), checkpoint_upload_fn=upload)
    assert _left(reports) == []


@pytest.mark.parametrize("what", ["missing", "file"])
def test_what_is_no_folder_is_told(reports, own, what):
    (own / "file").touch()
    with pytest.raises(RtrainError, match=f"{what}: N"):  # No such file, Not a directory
        reports.report({}, Checkpoint(str({"missing": own / "missing", "file": own / "file"}[what])))
