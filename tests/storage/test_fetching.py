"""A run directory out of a store: whole, by its checksums, or not at all."""

from __future__ import annotations

import json
import time

import pytest
from s3_faults import Fault
from small_run import until

from rtrain.cli.app import run as command
from rtrain.errors import CheckpointError, ConfigError, RtrainError
from rtrain.runs.events import read_events
from rtrain.runs.labels import Labels, read_labels
from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run
from rtrain.storage import fetching
from rtrain.storage.fetching import fetch_run, is_alive, stored_run, stored_runs
from rtrain.storage.folders import open_folder


@pytest.fixture
def copied(small_run, copying, folder):
    """A run with three checkpoints in the store: the best, one more, and the newest. Its machine is gone."""
    mirror = copying(folder)
    for step, value in ((1, -5), (2, 0), (3, 1)):
        small_run.report(step)
        small_run.save(step, value=value)
    small_run.recorder.manifest.status = "preempted"
    small_run.end()
    assert mirror.finish(60).complete
    return small_run


@pytest.fixture
def told():
    return []


@pytest.mark.parametrize("url", ["s3://box/all", "file://{tmp_path}/store"])
def test_a_fetched_run_is_a_whole_run_directory(small_run, copying, broken, tmp_path, told, url):
    storage = url.format(tmp_path=tmp_path)
    mirror = copying(open_folder(storage, "small", "one"))
    names = [small_run.save(step, value=value) for step, value in ((1, -5), (2, 0), (3, 1))]
    small_run.report(3)
    small_run.end()
    assert mirror.finish(60).complete
    (run,) = stored_runs(storage, "small")
    into = tmp_path / "elsewhere" / run.run_id
    fetch_run(run, into, told.append)
    assert verify_run(into) == told == []
    fetched = Run.load(into)
    assert [one.name for one in fetched.checkpoints] == [names[0], names[2]]
    assert fetched.best_checkpoint == into / "checkpoints" / names[0]
    assert list(fetched.events()) == list(read_events(small_run.path / "events.jsonl"))
    for name in ("config.yaml", "logs/driver.log"):
        assert (into / name).read_bytes() == (small_run.path / name).read_bytes()
    assert [path.name for path in into.parent.iterdir()] == ["one"]


def test_the_events_of_a_run_that_was_killed_are_put_together(small_run, copying, folder, seen, tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.storage.events_copy.PART_BYTES", 1000)
    copying(folder)
    last = small_run.report_until_parts(seen, 2)
    name = small_run.save(last)
    until(lambda: f"checkpoints/{name}/checkpoint.json" in seen.sizes())
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", print)
    assert [event.step for event in read_events(tmp_path / "again" / "events.jsonl")] == list(range(last))


@pytest.mark.parametrize("fault", ["changed", "short", "gone"])
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_taken(copied, s3, tmp_path, told, fault):
    newest = copied.checkpoints()[-1]
    key = f"all/small/one/checkpoints/{newest}/model.bin"
    if fault == "gone":
        s3.client.delete_object(Bucket="box", Key=key)
    else:
        s3.put("box", {key: b"x" * 1000 if fault == "changed" else b"x"})
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", told.append)
    assert [one.name for one in Run.load(tmp_path / "again").checkpoints] == copied.checkpoints()[:2]
    assert verify_run(tmp_path / "again") == []
    assert told[0].startswith(f"s3://box/all/small/one/checkpoints/{newest} is damaged: model.bin")


def test_a_checkpoint_without_its_record_is_none(copied, s3, tmp_path):
    newest = copied.checkpoints()[-1]
    s3.client.delete_object(Bucket="box", Key=f"all/small/one/checkpoints/{newest}/checkpoint.json")
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", print)
    assert newest not in [one.name for one in Run.load(tmp_path / "again").checkpoints]


def test_nothing_is_made_where_all_checkpoints_are_damaged(copied, s3, tmp_path):
    for name in s3.names("box"):
        if name.endswith("model.bin"):
            s3.put("box", {name: b""})
    with pytest.raises(CheckpointError, match="all checkpoints of s3://box/all/small/one are damaged"):
        fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "new" / "again", print)
    assert not list((tmp_path / "new").iterdir())


def test_a_run_that_is_here_is_not_overwritten(copied, tmp_path):
    (tmp_path / "again").mkdir()
    with pytest.raises(RtrainError, match="exists"):
        fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", print)


@pytest.mark.parametrize("name", ["../../out.bin", "/{tmp_path}/out.bin"])
def test_a_record_that_names_a_file_elsewhere_is_damaged(copied, s3, tmp_path, told, name):
    key = f"all/small/one/checkpoints/{copied.checkpoints()[-1]}/checkpoint.json"
    record = json.loads(s3.client.get_object(Bucket="box", Key=key)["Body"].read())
    record["files"] = {name.format(tmp_path=tmp_path): {"size_bytes": 1, "sha256": "0"}}
    s3.put("box", {key: json.dumps(record).encode()})
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "deep" / "er" / "again", told.append)
    assert not list(tmp_path.rglob("out.bin"))
    assert "outside its folder" in told[0]
    assert len(Run.load(tmp_path / "deep" / "er" / "again").checkpoints) == 2


def test_a_store_that_fails_for_a_moment_is_asked_again(copied, broken, tmp_path, monkeypatch):
    broken.faults.append(Fault(status=503, times=3))
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", print)
    assert verify_run(tmp_path / "again") == []


def test_what_is_no_run_is_a_clear_error(broken):
    with pytest.raises(ConfigError, match=r"RUN: s3://box/nothing does not exist"):
        stored_run("s3://box/nothing")
    assert list(stored_runs("s3://box/nothing", "small")) == []


def test_a_run_that_gives_signs_of_life_is_alive(small_run, copying, folder, seen, broken, monkeypatch):
    monkeypatch.setattr(fetching, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(fetching, "SILENCE_SECONDS", 1.0)
    mirror = copying(folder)
    until(lambda: "manifest.json" in seen.sizes())
    run = stored_run("s3://box/all/small/one")
    assert is_alive(run)
    broken.stop()
    assert not mirror.finish(0).complete
    time.sleep(0.3)
    broken.start()
    assert not is_alive(stored_run("s3://box/all/small/one"))


def test_a_run_whose_copy_is_complete_is_not_alive(copied):
    assert not is_alive(stored_run("s3://box/all/small/one"))


def test_a_run_in_a_store_is_verified(copied, s3, capsys):
    newest, url = copied.checkpoints()[-1], "s3://box/all/small/one"
    assert command(["runs", "verify", url]) == 0
    s3.put("box", {f"all/small/one/checkpoints/{newest}/model.bin": b"x" * 1000})
    s3.put("box", {"all/small/one/checkpoints/epoch-0000-step-00000009/model.bin": b"torn"})
    s3.client.delete_object(Bucket="box", Key=f"all/small/one/checkpoints/{copied.checkpoints()[0]}/parts/0.bin")
    capsys.readouterr()
    assert command(["runs", "verify", url]) == 1
    told = capsys.readouterr().out
    assert f"damaged     checkpoints/{newest}/model.bin  (its content has changed)" in told
    assert f"missing     checkpoints/{copied.checkpoints()[0]}/parts/0.bin" in told
    assert "unfinished  checkpoints/epoch-0000-step-00000009" in told
    assert f"{url}: 2 lost, 1 to note" in told


def test_a_run_that_is_over_is_uploaded(small_run, broken, tmp_path, capsys):
    small_run.save(1)
    config = {"checkpoint": {"keep": 2, "best": {"keep": 1}}, "storage": None, "storage_timeout_seconds": 5}
    small_run.recorder.manifest.config = {"run": config}
    small_run.end()
    assert command(["runs", "upload", str(small_run.path)]) == 2
    assert "has no run.storage" in capsys.readouterr().err
    assert command(["runs", "upload", str(small_run.path), "--to", "s3://box/all"]) == 0
    assert "s3://box/all/small/one: complete" in capsys.readouterr().out
    fetch_run(stored_run("s3://box/all/small/one"), tmp_path / "again", print)
    assert verify_run(tmp_path / "again") == []
    assert Run.load(small_run.path).manifest.storage["complete"]


def test_an_unreachable_store_is_called_what_the_user_called_it(small_run, tmp_path, capsys):
    small_run.end()
    assert command(["runs", "upload", str(small_run.path), "--to", "s3x://box"]) == 2
    assert "--to: s3x://box" in capsys.readouterr().err
    assert command(["runs", "fetch", f"file://{tmp_path}/none/small/one"]) == 2
    told = capsys.readouterr().err
    assert "URL: file://" in told
    assert "run.storage" not in told


def test_a_run_is_fetched_by_a_command(copied, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").rename(tmp_path / "there")
    assert command(["runs", "fetch", "s3://box/all/small/one"]) == 0
    assert capsys.readouterr().out == "runs/small/one\n"
    assert verify_run(tmp_path / "runs" / "small" / "one") == []
    assert command(["runs", "fetch", "s3://box/all/small/one"]) == 1
    assert command(["runs", "fetch", "s3://box/all/small/two"]) == 2
    assert "URL: s3://box/all/small/two does not exist" in capsys.readouterr().err


def test_what_is_written_on_a_copy_is_fetched_with_it(copied, broken, tmp_path, capsys):
    url = "s3://box/all/small/one"
    assert command(["runs", "tag", url, "paper"]) == 0
    broken.faults.append(Fault(status=503, times=3))
    assert command(["runs", "note", url, "look again"]) == 0
    assert command(["runs", "path", f"{url}/"]) == 0
    assert capsys.readouterr().out == f"paper\n{url}\n"
    fetch_run(stored_run(url), tmp_path / "again", print)
    assert read_labels(tmp_path / "again") == Labels(tags=("paper",), note="look again")
