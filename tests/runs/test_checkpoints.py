import json

import pytest

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import (
    checkpoints_dir,
    latest_checkpoint,
    prune_checkpoints,
    read_record,
    write_checkpoint,
)
from rtrain.runs.files import sha256_of


def write_one(run_dir, step, text="weights"):
    return write_checkpoint(
        run_dir,
        lambda folder: (folder / "model").write_text(text) and None,
        step=step,
        epoch=step // 10,
        metrics={"a": 1.0},
    )


def test_record_lists_each_file_with_size_and_hash(tmp_path):
    record = write_one(tmp_path, 10)
    folder = checkpoints_dir(tmp_path) / record["name"]
    assert record["files"]["model"] == {"size_bytes": 7, "sha256": sha256_of(folder / "model")}
    assert record["size_bytes"] == 7
    assert read_record(folder) == record


def test_latest_is_the_one_with_most_steps(tmp_path):
    for step in (30, 100, 20):
        write_one(tmp_path, step)
    assert latest_checkpoint(tmp_path).name.endswith("step-00000100")


def test_no_checkpoint_is_none(tmp_path):
    assert latest_checkpoint(tmp_path) is None


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    def fail(folder):
        (folder / "half").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="No space left"):
        write_checkpoint(tmp_path, fail, step=1, epoch=0, metrics={})
    assert list(checkpoints_dir(tmp_path).iterdir()) == []
    assert latest_checkpoint(tmp_path) is None


def test_a_folder_without_record_is_no_checkpoint(tmp_path):
    write_one(tmp_path, 10)
    torn = checkpoints_dir(tmp_path) / "epoch-0009-step-00000099"
    torn.mkdir()
    (torn / "model").write_text("half")
    assert latest_checkpoint(tmp_path).name.endswith("step-00000010")


def test_same_step_twice_keeps_the_first(tmp_path):
    first = write_one(tmp_path, 10, "first")
    assert write_one(tmp_path, 10, "second") == first


def test_pruning_keeps_the_newest_and_the_best(tmp_path):
    records = [{**write_one(tmp_path, step), "best": step == 20} for step in (10, 20, 30, 40)]
    kept = prune_checkpoints(tmp_path, records, keep=1)
    assert [record["step"] for record in kept] == [20, 40]
    assert sorted(p.name[-2:] for p in checkpoints_dir(tmp_path).iterdir()) == ["20", "40"]


def test_record_on_disk_is_json(tmp_path):
    record = write_one(tmp_path, 5)
    text = (checkpoints_dir(tmp_path) / record["name"] / "checkpoint.json").read_text()
    assert json.loads(text)["step"] == 5


def test_a_checkpoint_is_hidden_before_it_is_deleted(tmp_path, monkeypatch):
    records = [
        write_checkpoint(tmp_path, lambda folder: (folder / "a").write_text("a"), step=step, epoch=0, metrics={})
        for step in (1, 2)
    ]
    deleted = []
    monkeypatch.setattr("rtrain.runs.checkpoints.shutil.rmtree", lambda folder, **_: deleted.append(folder.name))
    prune_checkpoints(tmp_path, [{**record, "best": False} for record in records], keep=1)
    assert len(deleted) == 1
    assert deleted[0].startswith(f".{records[0]['name']}")
    assert [folder.name for folder in (tmp_path / "checkpoints").glob("[!.]*")] == [records[1]["name"]]
