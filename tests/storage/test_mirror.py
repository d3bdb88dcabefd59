"""The copy of a run in a store, over real HTTP that breaks: what is there is whole, and nothing is lost for good."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest
from s3_faults import Fault
from small_run import stored_manifest, stored_names, until

from rtrain.storage.folders import open_folder


def puts(broken, what=""):
    return [one for one in broken.asked if one.startswith("PUT") and what in one and not one.endswith("/")]


def assert_same(folder, run):
    """Every file of the run directory is in the store, byte by byte; the manifest but for what it says of the store."""
    here = {path.relative_to(run.path).as_posix(): path for path in run.path.rglob("*") if path.is_file()}
    assert set(folder.sizes()) == {name for name in here if not name.rpartition("/")[2].startswith(".")}
    for name in set(here) & set(folder.sizes()) - {"manifest.json"}:
        with folder.open(name) as stream:
            assert stream.read() == here[name].read_bytes(), name
    local, stored = json.loads(here["manifest.json"].read_text()), stored_manifest(folder)
    assert stored.pop("storage")["complete"]
    local.pop("storage", None)
    assert stored == local


@pytest.mark.parametrize("url", ["s3://box/all", "file://{tmp_path}/store", "memory://store"])
def test_a_run_is_in_the_store_as_it_is_here(small_run, copying, broken, tmp_path, url):
    folder = open_folder(url.format(tmp_path=tmp_path), "small", "one")
    mirror = copying(folder)
    small_run.report(1)
    first, second = small_run.save(1), small_run.save(2)
    until(lambda: stored_names(folder) == [first, second])
    assert not stored_manifest(folder)["storage"]["complete"]
    small_run.report(3)
    third = small_run.save(3, value=-1)
    until(lambda: stored_names(folder) == [second, third])
    until(lambda: not folder.sizes(f"checkpoints/{first}"))
    small_run.end()
    ending = mirror.finish(60)
    assert (ending.complete, ending.missing, ending.error) == (True, [], None)
    assert_same(folder, small_run)


def test_a_checkpoint_is_there_when_all_its_files_are_and_listed_after_that(small_run, copying, folder, seen, broken):
    name = small_run.save(1)
    mirror = copying(folder)
    until(lambda: stored_names(seen) == [name])
    sent = [one.partition("one/")[2] for one in puts(broken)]
    record = sent.index(f"checkpoints/{name}/checkpoint.json")
    assert {f"checkpoints/{name}/model.bin", f"checkpoints/{name}/parts/0.bin"} <= set(sent[:record])
    first = sent.index(f"checkpoints/{name}/model.bin")
    assert "manifest.json" not in sent[first:record]
    assert "manifest.json" in sent[record:]
    for step in (2, 3):
        small_run.save(step, value=step - 10)
    until(lambda: name not in stored_names(seen) and not seen.sizes(f"checkpoints/{name}"))
    gone = [one for one in broken.asked if one.startswith("DELETE") and name in one]
    assert gone[0].endswith("checkpoint.json")
    assert mirror.finish(60).complete


def test_the_events_up_to_a_checkpoint_are_there_before_it(small_run, copying, folder, seen, broken):
    broken.faults.append(Fault(wait_seconds=0.5, what="PUT .*model.bin"))
    copying(folder)
    first = small_run.save(1)
    until(lambda: puts(broken, f"{first}/model.bin"))
    small_run.report(2)
    second = small_run.save(2)
    until(lambda: stored_names(seen) == [first, second])
    sent = [one.partition("one/")[2] for one in puts(broken)]
    began, ended = (sent.index(f"checkpoints/{first}/{file}") for file in ("model.bin", "checkpoint.json"))
    assert "events.jsonl" in sent[began:ended]


def test_the_best_one_stays(small_run, copying, folder, seen):
    mirror = copying(folder)
    best = small_run.save(1, value=-5)
    for step in (2, 3, 4):
        name = small_run.save(step, value=step)
        until(lambda name=name: name in stored_names(seen))
    assert stored_names(seen) == small_run.checkpoints()
    assert stored_manifest(seen)["best_checkpoint"] == f"checkpoints/{best}"
    assert mirror.finish(60).complete


@pytest.mark.parametrize("status", [500, 403])
def test_a_store_that_fails_for_a_while_costs_tries_and_not_the_run(small_run, copying, folder, seen, broken, status):
    told = []
    broken.faults.append(Fault(status=status, times=9))
    mirror = copying(folder, told)
    name = small_run.save(1)
    until(lambda: stored_names(seen) == [name])
    broken.faults.append(Fault(status=status, times=5, what="PUT .*step-00000002"))
    small_run.save(2)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)
    assert "s3://box/all/small/one fails" in told[0]
    assert told[1] == "s3://box/all/small/one works again"
    assert len(told) <= 4


def test_a_connection_that_is_cut_in_the_middle_of_a_file(small_run, copying, folder, seen, broken):
    broken.faults.append(Fault(cut=True, times=3, what="PUT .*model.bin"))
    mirror = copying(folder)
    small_run.save(1, size=3_000_000)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)


def test_a_part_of_a_large_file_that_fails_is_sent_again(small_run, copying, folder, seen, broken, monkeypatch):
    monkeypatch.setattr("rtrain.storage.folders.CHUNK_BYTES", 6 << 20)
    broken.faults.append(Fault(status=503, times=3, what="partNumber=2"))
    mirror = copying(folder)
    small_run.save(1, size=13_000_000)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)


def test_after_an_outage_the_newest_comes_first_and_what_was_dropped_never(small_run, copying, folder, seen, broken):
    first = small_run.save(1, value=-5)
    mirror = copying(folder)
    until(lambda: stored_names(seen) == [first])
    broken.stop()
    names = [small_run.save(step, value=step) for step in range(2, 8)]
    time.sleep(0.3)
    broken.asked.clear()
    broken.start()
    until(lambda: stored_names(seen) == [first, *names[-2:]])
    sent = [name for one in puts(broken, "checkpoint.json") for name in names if name in one]
    # One may have been on its way when the store came back.
    assert sent[-2:] == [names[-1], names[-2]]
    assert len(sent) <= 3
    assert mirror.finish(60).complete


def test_what_is_dropped_on_its_way_to_a_slow_store_still_arrives_whole(small_run, copying, folder, seen, broken):
    broken.faults.append(Fault(wait_seconds=0.5, times=1, what="PUT .*model.bin"))
    mirror = copying(folder)
    first = small_run.save(1)
    until(lambda: puts(broken, "model.bin"))
    began = time.monotonic()
    later = [small_run.save(step, value=-step) for step in (2, 3, 4)]
    assert time.monotonic() - began < 0.45, "training waited for the store"
    assert first not in small_run.checkpoints()
    until(lambda: puts(broken, f"{first}/checkpoint.json"))
    until(lambda: stored_names(seen) == later[-2:])
    assert mirror.finish(60).complete


def test_at_the_end_a_dead_store_is_given_up_and_what_is_missing_is_told(small_run, copying, folder, seen, broken):
    told: list[str] = []
    mirror = copying(folder, told)
    first = small_run.save(1)
    until(lambda: stored_names(seen) == [first])
    broken.stop()
    second = small_run.save(2)
    small_run.end()
    until(lambda: told)  # that it fails
    began = time.monotonic()
    ending = mirror.finish(1.0)
    assert time.monotonic() - began < 20
    broken.start()
    assert (ending.complete, ending.missing) == (False, [second])
    assert "connect" in ending.error
    assert small_run.recorder.manifest.status == "succeeded"
    assert stored_manifest(seen)["status"] == "running"
    assert small_run.checkpoints() == [first, second]


@pytest.mark.slow
def test_a_store_that_moves_on_is_waited_for(small_run, copying, folder, seen, broken):
    """Each request takes less than the run would wait for nothing at all, and there are many."""
    broken.faults.append(Fault(wait_seconds=0.4))
    mirror = copying(folder)
    small_run.save(1)
    small_run.end()
    assert mirror.finish(2).complete


def test_a_damaged_checkpoint_is_not_sent_as_a_whole_one(small_run, copying, folder, seen):
    name = small_run.save(1)
    place = small_run.path / "checkpoints" / name / "model.bin"
    place.write_bytes(b"x" * place.stat().st_size)
    mirror = copying(folder)
    small_run.end()
    ending = mirror.finish(60)
    assert (ending.complete, ending.missing, ending.error) == (False, [name], "its files on this machine are damaged")
    assert not seen.sizes("checkpoints")


def test_events_go_in_parts_that_are_joined_at_the_end(small_run, copying, folder, seen, broken, monkeypatch):
    monkeypatch.setattr("rtrain.storage.events_copy.PART_BYTES", 2000)
    mirror = copying(folder)
    small_run.report_until_parts(seen, 3)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)


KILLED = """
import sys, time
from pathlib import Path
from rtrain.storage.folders import open_folder
from rtrain.storage.mirror import mirror_run
from rtrain.runs.checkpoints import Retention
mirror_run(Path(sys.argv[1]), open_folder("s3://box/all", "small", "one"), Retention(2, 1), print)
time.sleep(60)
"""


def test_a_process_that_is_killed_while_it_sends_leaves_nothing_that_counts(
    start, small_run, copying, folder, seen, broken
):
    first = small_run.save(1)
    mirror = copying(folder)
    until(lambda: stored_names(seen) == [first])
    assert mirror.finish(60).complete
    second = small_run.save(2)
    broken.faults.append(Fault(wait_seconds=3, times=1, what=rf"PUT .*{second}/parts"))
    process = start([sys.executable, "-c", KILLED, str(small_run.path)], env=os.environ)
    until(lambda: seen.sizes(f"checkpoints/{second}") and puts(broken, f"{second}/parts"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert seen.sizes(f"checkpoints/{second}")
    assert stored_names(seen) == [first]
    mirror = copying(folder)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)


def test_a_store_that_is_ahead_keeps_what_is_newer_and_is_not_sent_what_it_would_drop(
    small_run, copying, folder, seen, broken
):
    older, newer, newest = (small_run.save(step, value=1 / step) for step in (10, 20, 30))
    assert copying(folder).finish(60).complete
    broken.asked.clear()
    (small_run.path / "checkpoints" / newest).rename(small_run.path / "checkpoints" / ".damaged")
    small_run.recorder.close()
    small_run.take_up()
    between = small_run.save(25, value=1 / 25)
    assert small_run.checkpoints() == [newer, between]
    mirror = copying(folder)
    until(lambda: stored_names(seen) == [between, newest])
    until(lambda: not seen.sizes(f"checkpoints/{newer}"))
    small_run.end()
    assert mirror.finish(60).complete
    assert stored_names(seen) == [between, newest]
    assert not puts(broken, newer) + puts(broken, older)


def test_what_was_left_of_a_checkpoint_that_is_gone_is_cleared_away(small_run, copying, folder, seen, s3):
    small_run.save(1)
    s3.put("box", {"all/small/one/checkpoints/epoch-0000-step-00000009/model.bin": b"torn"})
    mirror = copying(folder)
    small_run.end()
    assert mirror.finish(60).complete
    assert_same(seen, small_run)


def test_a_checkpoint_that_is_written_anew_takes_the_place_of_the_one_of_its_name(small_run, copying, folder, seen):
    name = small_run.save(1)
    assert copying(folder).finish(60).complete
    (small_run.path / "checkpoints" / name).rename(small_run.path / "checkpoints" / ".damaged")
    assert small_run.save(1) == name
    mirror = copying(folder)
    small_run.end()
    assert mirror.finish(60).complete
    with seen.open(f"checkpoints/{name}/model.bin") as stream:
        assert stream.read() == (small_run.path / "checkpoints" / name / "model.bin").read_bytes()
