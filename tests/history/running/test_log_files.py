"""The logs of runs that are over, and of those that go on."""

from __future__ import annotations

import pytest
from made_runs import make_run

from rtrain.errors import ConfigError, StrangeFileError
from rtrain.history.running.log_files import followed, last_lines, log_name
from rtrain.runs.filesystem.lock import Lock


@pytest.fixture
def run(project):
    folder = make_run(project / "runs", workers={"0": {"pid": 1}, "3": {"pid": 2}})
    (folder / "logs").mkdir()
    (folder / "logs" / "driver.log").write_text("one\ntwo\nthree\n")
    (folder / "logs" / "worker-3.log").write_text("printed\n")
    return folder


def test_the_log_of_the_driver_or_of_a_worker(run):
    assert list(last_lines(run, log_name(run, None))) == ["one", "two", "three"]
    assert list(last_lines(run, log_name(run, None), 2)) == ["two", "three"]
    assert list(last_lines(run, log_name(run, 3))) == ["printed"]
    with pytest.raises(ConfigError, match="--rank 3"):
        log_name(run, 7)


def test_a_log_is_followed_until_the_run_is_over(run):
    lock, path = Lock(run), run / "logs" / "driver.log"
    parts = ["fo", "ur\nfi", "ve"]

    def wait(seconds):
        if parts:
            path.write_text(path.read_text() + parts.pop(0))
        else:
            lock.close()

    assert list(followed(run, "logs/driver.log", 1, wait)) == ["three", "four", "five"]


def test_a_worker_that_printed_nothing_has_an_empty_log(run):
    name = log_name(run, 0)
    assert list(last_lines(run, name)) == list(followed(run, name)) == []


def test_the_log_of_a_worker_is_followed_before_it_prints_something(run):
    lock, waits = Lock(run), []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            (run / "logs" / "worker-0.log").write_text("at last\n")
        if len(waits) == 3:
            lock.close()

    assert list(followed(run, log_name(run, 0), wait=wait)) == ["at last"]


def test_a_damaged_manifest_names_no_worker(run):
    (run / "manifest.json").write_text("{")
    with pytest.raises(ConfigError, match="--rank 3"):
        log_name(run, 0)


def test_the_log_of_a_run_that_is_over_is_printed_once(run):
    def wait(seconds):
        pytest.fail("nothing to wait for")

    assert list(followed(run, "logs/driver.log", wait=wait)) == ["one", "two", "three"]


def test_a_link_in_the_place_of_a_log_is_not_followed(run, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (run / "logs" / "driver.log").unlink()
    (run / "logs" / "driver.log").symlink_to(tmp_path / "secret")
    with pytest.raises(StrangeFileError):
        list(last_lines(run, log_name(run, None)))
