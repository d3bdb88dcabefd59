"""Files that this account may not read are not damaged: the error names the path and chmod, and nothing is moved."""

import errno
import os
from pathlib import Path

import pytest
from checkpointed_runs import write_checkpointed_run

from rtrain.cli.app import run as rtrain
from rtrain.errors import ForbiddenFileError
from rtrain.runs.checkpoints import all_checkpoints, checkpoint_dir, read_record, read_state
from rtrain.runs.filesystem.plain_files import forbidden
from rtrain.runs.manifest import read_manifest
from rtrain.runs.verify import check_whole, newest_whole, verify_run, without_record
from rtrain.sweeps.record.sweep_record import read_sweep
from rtrain.trainers.trained import read_about


@pytest.fixture
def run_dir(tmp_path):
    """A run with two checkpoints, and a file of a sweep."""
    write_checkpointed_run(tmp_path)
    for name in ("sweep.json", "events.jsonl"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture
def forbid(monkeypatch):
    """Return a function that lets nobody read files of a name; root may read what chmod forbids."""

    def forbid(name):
        os_open, path_open = os.open, Path.open

        def refused(opened):
            def open_file(path, *args, **how):
                if Path(path).name == name:
                    raise PermissionError(errno.EACCES, "Permission denied", str(path))
                return opened(path, *args, **how)

            return open_file

        monkeypatch.setattr(os, "open", refused(os_open))
        monkeypatch.setattr(Path, "open", refused(path_open))

    return forbid


READERS = {
    "manifest.json": [read_manifest, verify_run],
    "checkpoint.json": [
        lambda run: read_record(newest(run)),
        lambda run: check_whole(newest(run)),
        all_checkpoints,
        newest_whole,
        lambda run: list(without_record(run, [])),
    ],
    "about.json": [lambda run: read_about(newest(run))],
    "state.json": [lambda run: read_state(newest(run), "state.json")],
    "sweep.json": [read_sweep],
    "model": [lambda run: check_whole(newest(run)), newest_whole],
}


def newest(run_dir):
    return checkpoint_dir(run_dir, step=2, epoch=0)


@pytest.mark.parametrize(
    ("name", "read"), [(name, read) for name, ones in READERS.items() for read in ones], ids=lambda one: str(one)[:20]
)
def test_a_file_that_may_not_be_read_is_named_with_the_way_to_allow_it(run_dir, forbid, name, read):
    for there in ("about.json", "state.json"):
        (newest(run_dir) / there).touch()
    before = sorted(run_dir.rglob("*"))
    forbid(name)
    with pytest.raises(ForbiddenFileError) as refused:
        read(run_dir)
    assert f"{name} may not be read by this account" in refused.value.message
    assert f"{name}" in refused.value.hint
    assert "chmod +r" in refused.value.hint
    assert "damaged" not in str(refused.value)
    assert sorted(run_dir.rglob("*")) == before


@pytest.mark.parametrize("name", ["checkpoint.json", "model"])
def test_such_files_are_listed_and_not_called_damaged(run_dir, forbid, name, capsys):
    forbid(name)
    found = [finding for finding in verify_run(run_dir) if "checkpoints" in str(finding.path)]
    assert {finding.problem for finding in found} == {"forbidden"}
    assert rtrain(["runs", "verify", str(run_dir)]) == 1
    assert "forbidden" in capsys.readouterr().out


def test_a_folder_that_is_closed_on_the_way_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "closed")
    error = forbidden(tmp_path / "closed" / "run" / "manifest.json")
    assert f"{tmp_path / 'closed'} is closed to it" in error.message
    assert f"chmod +x {tmp_path / 'closed'}" in error.hint
