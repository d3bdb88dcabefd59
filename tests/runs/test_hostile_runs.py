"""What is written in a run directory leads to no file outside of it, and never to a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rtrain.errors import CheckpointError, RtrainError
from rtrain.runs.checkpoints import (
    RECORD_NAME,
    Retention,
    all_checkpoints,
    checkpoint_dir,
    checkpoints_dir,
    prune_checkpoints,
    read_record,
    write_checkpoint,
)
from rtrain.runs.run import Run
from rtrain.runs.signature import is_signed_by_this_account, key_path, with_signature
from rtrain.runs.verify import check_whole, verify_run
from rtrain.testing.workers import make_manifest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with two checkpoints, beside a folder that is none of its business."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("three years")
    folder = tmp_path / "run"
    records = []
    for step in (1, 2):
        target = checkpoint_dir(folder, step=step, epoch=0)
        facts = {"step": step, "epoch": 0, "metrics": {}, "score": None}
        records.append(write_checkpoint(target, lambda path: (path / "weights").write_text("1") and None, facts))
    shutil.copy(folder / "checkpoints" / records[0]["name"] / RECORD_NAME, victim / RECORD_NAME)
    make_manifest(run_id="run", run_name="mlp", checkpoints=records).write(folder)
    (folder / "events.jsonl").touch()
    return folder


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def is_unharmed(run: Path) -> bool:
    return (run.parent / "victim" / "thesis.txt").read_text() == "three years"


NAMES = ["../../victim", "..", "/etc", "a/b", "", 3, None, ["x"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_names_no_checkpoint_elsewhere(run, name):
    change(run / "manifest.json", checkpoints=[{"name": name, "step": 1}])
    with pytest.raises(RtrainError, match="is not the name of a checkpoint"):
        Run.load(run)


@pytest.mark.parametrize("place", ["checkpoints/../../victim", "../victim", "/etc", "checkpoints", "x/y", 5])
def test_the_best_checkpoint_lies_in_the_run(run, place):
    change(run / "manifest.json", best_checkpoint=place)
    try:
        best = Run.load(run).best_checkpoint
    except RtrainError:
        return
    assert best is not None
    assert run in best.resolve().parents


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "3", "{}", "[" * 100_000, '{"checkpoints": 1}', "\udcff", "nonsense"]
)
def test_what_is_no_manifest_is_told(run, text):
    (run / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RtrainError, match="manifest"):
        Run.load(run)


def test_a_record_has_the_name_of_its_folder_so_that_pruning_deletes_no_other(run):
    for folder in all_checkpoints(run):
        change(folder / RECORD_NAME, name="../../victim")
    records = [read_record(folder) for folder in all_checkpoints(run)]
    assert [record["name"] for record in records] == [folder.name for folder in all_checkpoints(run)]
    prune_checkpoints(run, records, Retention(1, 0))
    assert len(all_checkpoints(run)) == 1
    assert is_unharmed(run)


def test_pruning_takes_a_link_away_and_leaves_what_it_leads_to(run):
    first = all_checkpoints(run)[0]
    shutil.rmtree(first)
    first.symlink_to(run.parent / "victim", target_is_directory=True)
    (all_checkpoints(run)[-1] / "inside").symlink_to(run.parent / "victim")
    records = [read_record(folder) for folder in all_checkpoints(run)]
    assert len(prune_checkpoints(run, records, Retention(1, 0))) == 1
    assert not first.is_symlink()
    prune_checkpoints(run, [{**records[-1], "step": 0}, {**records[-1], "name": "none", "step": 9}], Retention(1, 0))
    assert not all_checkpoints(run)
    assert is_unharmed(run)


@pytest.mark.parametrize("name", ["../../../victim/thesis.txt", "/etc/hostname", "link"])
def test_a_record_that_lists_a_file_elsewhere_is_damaged(run, name):
    folder = all_checkpoints(run)[-1]
    (folder / "link").symlink_to(run.parent / "victim" / "thesis.txt")
    change(folder / RECORD_NAME, files={name: {"size_bytes": 11, "sha256": "0" * 64}})
    with pytest.raises(CheckpointError, match="outside its folder"):
        check_whole(folder)
    assert any("outside its folder" in finding.detail for finding in verify_run(run))


@pytest.mark.parametrize(
    "changes",
    [
        {"files": []},
        {"files": {"weights": 3}},
        {"files": {"weights": {}}},
        {"step": "x"},
        {"step": None},
        {"files": None},
    ],
)
def test_a_record_that_makes_no_sense_is_no_checkpoint(run, changes):
    folder = all_checkpoints(run)[-1]
    change(folder / RECORD_NAME, **changes)
    with pytest.raises(CheckpointError, match="not a complete checkpoint"):
        read_record(folder)
    assert folder not in all_checkpoints(run)
    assert folder.parent == checkpoints_dir(run)


@pytest.mark.parametrize("score", [3, {}, {"mode": "odd", "value": 1}, {"mode": "max", "value": None}, {"mode": []}])
def test_a_score_that_makes_no_sense_counts_for_nothing(run, score):
    records = [read_record(folder) | {"score": score} for folder in all_checkpoints(run)]
    assert len(prune_checkpoints(run, records, Retention(1, 1))) == 1


def test_a_config_bears_the_mark_of_its_account_and_project(tmp_path, monkeypatch):
    text = with_signature("trainer: {type: torch}\n", "/project")
    assert is_signed_by_this_account(text, "/project")
    assert not is_signed_by_this_account(text, "/other")
    assert not is_signed_by_this_account(text.replace("torch", "jax"), "/project")
    assert not is_signed_by_this_account("trainer: {type: torch}\n", "/project")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of-another-account"))
    assert not is_signed_by_this_account(text, "/project")
    assert not key_path().exists()


def test_without_a_place_for_a_key_nothing_is_marked(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    text = with_signature("a: 1\n", "")
    assert text == "a: 1\n"
    assert not is_signed_by_this_account(text, "")
