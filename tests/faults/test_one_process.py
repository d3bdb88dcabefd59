"""Whatever ends a run in one process, at whatever moment: it goes on, to the same end."""

import os
import random
import signal
import time

import numpy as np
import pytest
from harness import (
    NUM_EPOCHS,
    STEPS_PER_EPOCH,
    AtChange,
    Child,
    JumpingClock,
    LostTerminal,
    assert_like,
    full,
    killed,
    read_only,
    recovered,
    run_dirs,
    status_of,
    until_trained,
    weights_of,
)

from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run


def test_killed_at_a_random_change_of_a_file(tmp_path, whole, seed):
    reference, num_changes = whole
    number = random.Random(seed).randint(1, num_changes)
    assert Child(tmp_path / "runs", at=AtChange(number, killed)).wait() == -signal.SIGKILL
    assert_recovers(tmp_path / "runs", reference)


def test_killed_at_a_random_moment(tmp_path, whole, seed):
    rng = random.Random(seed)
    child = Child(tmp_path / "runs")
    until_trained(tmp_path / "runs", rng.randint(1, NUM_EPOCHS * STEPS_PER_EPOCH - 10))
    time.sleep(rng.uniform(0, 0.02))
    child.send(signal.SIGKILL)
    assert child.wait() in (0, -signal.SIGKILL)
    assert_recovers(tmp_path / "runs", whole[0])


@pytest.mark.slow
def test_killed_again_and_again(tmp_path, whole, seed):
    reference, num_changes = whole
    rng = random.Random(seed)
    for _ in range(4):
        at = AtChange(rng.randint(1, num_changes // 3), killed)
        assert Child(tmp_path / "runs", ["run.resume=auto"], at).wait() in (0, -signal.SIGKILL)
    assert_recovers(tmp_path / "runs", reference)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_and_maybe_a_second_one(tmp_path, whole, seed, number):
    rng = random.Random(seed)
    child = Child(tmp_path / "runs")
    until_trained(tmp_path / "runs", rng.randint(1, NUM_EPOCHS * STEPS_PER_EPOCH - 10))
    child.send(number)
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0, 0.02))
        child.send(number)
    code = child.wait()
    (run_dir,) = run_dirs(tmp_path / "runs")
    expected = {0: "succeeded", 130: "interrupted", 143: "preempted"}
    assert code in expected or code == -number
    if code in expected:
        assert status_of(run_dir) in (expected[code], "succeeded")  # it may have been over already
    assert_recovers(tmp_path / "runs", whole[0])


def test_a_disk_that_is_full_for_a_moment(tmp_path, whole, seed):
    reference, num_changes = whole
    number = random.Random(seed).randint(1, num_changes)
    code = Child(tmp_path / "runs", at=AtChange(number, full)).wait()
    assert code in (0, 1), "no clean error"
    assert_recovers(tmp_path / "runs", reference)


@pytest.mark.parametrize("fault", [full, read_only])
def test_a_disk_that_takes_nothing_any_more(tmp_path, whole, seed, fault):
    reference, num_changes = whole
    number = random.Random(seed).randint(1, num_changes)
    assert Child(tmp_path / "runs", at=AtChange(number, fault, lasting=True)).wait() == 1
    assert fault.__doc__
    assert os.strerror({full: 28, read_only: 30}[fault]) in (tmp_path / "runs.log").read_text(), (
        "the reason is not told"
    )
    assert_recovers(tmp_path / "runs", reference)


def test_a_run_directory_that_is_deleted_while_it_is_written(tmp_path, whole, seed):
    child = Child(tmp_path / "runs")
    until_trained(tmp_path / "runs", random.Random(seed).randint(1, STEPS_PER_EPOCH))
    (run_dir,) = run_dirs(tmp_path / "runs")
    run_dir.rename(tmp_path / "elsewhere")
    code, log = child.wait(), (tmp_path / "runs.log").read_text()
    assert code == 0, log
    assert f"{run_dir} was deleted or moved; it is created again" in log
    assert "Traceback" not in log
    run = Run.load(run_dir)
    assert run.status == "succeeded"
    found = [(one.problem, one.path.name) for one in verify_run(run_dir)]
    assert found == [("missing", "events.jsonl")]  # the reports before
    np.testing.assert_equal(weights_of(run_dir), weights_of(whole[0]))
    assert list(run.events())[-1].step == NUM_EPOCHS * STEPS_PER_EPOCH


@pytest.mark.parametrize("kind", ["pipe", "full", "pty", "closed"])
def test_a_terminal_that_goes_away(tmp_path, whole, seed, kind):
    lost = LostTerminal(kind, lines=random.Random(seed).randint(0, 3))
    assert Child(tmp_path / "runs", at=lost).wait() == 0, (tmp_path / "runs.log").read_text()
    (run_dir,) = run_dirs(tmp_path / "runs")
    assert_like(run_dir, whole[0])
    noted = "is discarded from now on" in (run_dir / "logs" / "driver.log").read_text()
    assert noted is (kind != "closed")


def test_a_clock_that_jumps(tmp_path, whole, seed):
    assert Child(tmp_path / "runs", at=JumpingClock(seed)).wait() == 0, (tmp_path / "runs.log").read_text()
    assert_like(run_dirs(tmp_path / "runs")[0], whole[0])


def assert_recovers(folder, reference):
    """Check that every manifest is whole, and that the same command brings the run to its end."""
    for run_dir in run_dirs(folder):
        status_of(run_dir)
    if run_dirs(folder) and status_of(run_dirs(folder)[-1]) == "succeeded":
        assert_like(run_dirs(folder)[-1], reference)
    else:
        assert_like(recovered(folder), reference)
