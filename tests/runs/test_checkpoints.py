import json
import resource
import shutil

import pytest

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import (
    Retention,
    best_record,
    checkpoint_dir,
    checkpoints_dir,
    latest_checkpoint,
    prune_checkpoints,
    read_record,
    write_checkpoint,
)
from rtrain.runs.filesystem.files import sha256_of


def write_one(run_dir, step, text="weights", score=None):
    facts = {"step": step, "epoch": step // 10, "metrics": {"a": 1.0}, "score": score}
    target = checkpoint_dir(run_dir, step=step, epoch=step // 10)
    return write_checkpoint(target, lambda folder: (folder / "model").write_text(text) and None, facts)


def score(value, mode="max"):
    return {"monitor": "val/a", "mode": mode, "value": value}


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
        write_checkpoint(checkpoint_dir(tmp_path, step=1, epoch=0), fail, {"step": 1})
    assert list(checkpoints_dir(tmp_path).iterdir()) == []
    assert latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize("how", ["moved", "deleted", "emptied"])
def test_a_run_directory_that_disappears_while_a_checkpoint_is_written_gets_it_again(tmp_path, how):
    target, calls = checkpoint_dir(tmp_path / "run", step=1, epoch=1), []

    def write(folder):
        calls.append(folder)
        (folder / "weights").write_text("all")
        if len(calls) < 3:
            match how:
                case "moved":
                    (tmp_path / "run").rename(tmp_path / f"away-{len(calls)}")
                case "deleted":
                    shutil.rmtree(tmp_path / "run")
                case "emptied":
                    (folder / "weights").unlink()
                    raise FileNotFoundError(folder / "weights")

    record = write_checkpoint(target, write, {"step": 1})
    assert list(record["files"]) == ["weights"]
    assert (len(calls), latest_checkpoint(tmp_path / "run")) == (3, target)
    assert {path.name for path in target.parent.iterdir()} == {target.name}


def test_what_is_missing_for_good_is_an_error(tmp_path):
    def write(folder):
        (folder / "weights").write_text((tmp_path / "not there").read_text())

    target = checkpoint_dir(tmp_path, step=1, epoch=1)
    with pytest.raises(CheckpointError, match=r"can't write the checkpoint .*: No such file"):
        write_checkpoint(target, write, {"step": 1})
    assert not list(target.parent.iterdir())


def test_a_folder_without_record_is_no_checkpoint(tmp_path):
    write_one(tmp_path, 10)
    torn = checkpoints_dir(tmp_path) / "epoch-0009-step-00000099"
    torn.mkdir()
    (torn / "model").write_text("half")
    assert latest_checkpoint(tmp_path).name.endswith("step-00000010")


def test_pruning_keeps_the_newest_and_the_best(tmp_path):
    records = [write_one(tmp_path, step, score=score(1 if step == 20 else 0)) for step in (10, 20, 30, 40)]
    kept = prune_checkpoints(tmp_path, records, Retention(1, 1))
    assert [record["step"] for record in kept] == [20, 40]
    assert sorted(p.name[-2:] for p in checkpoints_dir(tmp_path).iterdir()) == ["20", "40"]


def test_pruning_keeps_several_of_each(tmp_path):
    losses = {10: 0.3, 20: 0.1, 30: 0.2, 40: 0.5, 50: 0.4}
    records = [write_one(tmp_path, step, score=score(loss, "min")) for step, loss in losses.items()]
    kept = prune_checkpoints(tmp_path, records, Retention(2, 2))
    assert [record["step"] for record in kept] == [20, 30, 40, 50]


@pytest.mark.parametrize(("mode", "step"), [("max", 20), ("min", 10), ("newest", 40)])
def test_the_best_one_goes_by_its_mode_and_of_equal_ones_the_first_wins(tmp_path, mode, step):
    values = {10: 1, 20: 3, 30: 3, 40: 2}
    records = [write_one(tmp_path, one, score=score(value, mode)) for one, value in values.items()]
    assert best_record([*records, write_one(tmp_path, 50)])["step"] == step


def test_without_scores_there_is_no_best_one(tmp_path):
    assert best_record([write_one(tmp_path, 10)]) is None


def test_a_full_disk_is_named_where_a_framework_tells_only_of_its_own_code(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write(_):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        raise RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 0 vs 64")

    try:
        with pytest.raises(CheckpointError, match=r"File too large \(\[enforce fail at inline_container"):
            write_checkpoint(checkpoint_dir(tmp_path, step=1, epoch=0), write, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_record_on_disk_is_json(tmp_path):
    record = write_one(tmp_path, 5)
    text = (checkpoints_dir(tmp_path) / record["name"] / "checkpoint.json").read_text()
    assert json.loads(text)["step"] == 5


def test_a_checkpoint_is_hidden_before_it_is_deleted(tmp_path, monkeypatch):
    records = [write_one(tmp_path, step) for step in (1, 2)]
    deleted = []
    monkeypatch.setattr("rtrain.runs.checkpoints.shutil.rmtree", lambda folder, **_: deleted.append(folder.name))
    prune_checkpoints(tmp_path, records, Retention(1, 1))
    assert len(deleted) == 1
    assert deleted[0].startswith(f".{records[0]['name']}")
    assert [folder.name for folder in (tmp_path / "checkpoints").glob("[!.]*")] == [records[1]["name"]]
