"""Which cause is told when several workers fail, and when a run starts again."""

import json

import pytest

from rtrain.config.run_conf import FailureConf
from rtrain.engine.failures import FailureReason, Retries, ending_of
from rtrain.errors import said_by
from rtrain.runs.records import FailureKind, FailureRecord, WorkerFailure
from rtrain.trainers.known_errors import is_of_code, what_to_try


def raised(rank, kind, message, time, **more):
    return FailureRecord(rank=rank, type=kind, message=message, time=time, **more)


def lost(rank, kind, message=""):
    return WorkerFailure(rank=rank, type="ActorDiedError", message=message, kind=FailureKind(kind))


CLOSED = "[../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4711"


def test_the_first_exception_is_told_not_those_that_it_causes():
    ending = ending_of([raised(0, "RuntimeError", CLOSED, 1.0), raised(1, "ValueError", "no", 1.1)], [])
    assert (ending.kind, ending.rank, ending.type) == ("exception", 1, "ValueError")
    assert ending.message == "ValueError on worker 1 (worker 0 failed after it): no"


def test_a_worker_that_was_killed_is_told_before_those_that_lost_their_connection_to_it():
    ending = ending_of([raised(0, "RuntimeError", CLOSED, 1.0)], [lost(1, "worker died"), lost(0, "exception")])
    assert (ending.kind, ending.rank) == ("worker died", 1)


def test_a_worker_that_spoke_before_its_end_is_told_by_its_own_words():
    ending = ending_of([raised(1, "SystemExit", "3", 1.0)], [lost(1, "worker died")])
    assert (ending.kind, ending.type) == ("exception", "SystemExit")


def test_a_lost_machine_counts_more_than_a_dead_process():
    ending = ending_of([], [lost(0, "worker died"), lost(2, "node lost"), lost(3, "node lost")])
    assert (ending.kind, ending.message) == ("node lost", "the machine of workers 2, 3 was lost")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("MemoryError", ""),
        ("_ArrayMemoryError", "Unable to allocate 8.00 GiB for an array"),
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of memory allocating 123 bytes"),
        ("XGBoostError", "std::bad_alloc"),
    ],
)
def test_memory_that_is_not_enough_is_known_by_the_words_of_every_framework(kind, message):
    ending = ending_of([raised(0, kind, message, 1.0)], [])
    assert ending.kind == "out of memory"
    assert "trainer.batch_size" in ending.hint
    assert ("GPU memory" in ending.hint) == ("CUDA" in message)


@pytest.mark.parametrize(
    ("message", "kills"), [("Worker exit type: NODE_OUT_OF_MEMORY", 0), ("Worker exit type: SYSTEM_ERROR", 1)]
)
def test_a_process_that_was_killed_for_want_of_memory_says_what_to_change(message, kills):
    ending = ending_of([], [lost(1, "worker died", message)], kills)
    assert ending.kind == "out of memory"
    assert "dataset.memory=stream" in ending.hint


def test_the_same_exception_twice_without_progress_ends_the_run():
    retries = Retries(FailureConf(max_failures=10))
    error = FailureReason(kind="exception", message="ValueError on worker 0: no", type="ValueError", rank=0)
    assert retries.wait_after(error, progress=True) is not None
    assert retries.wait_after(error, progress=True) is not None
    assert retries.wait_after(error, progress=False) is None
    assert "the same error occurred again" in retries.refusal


def test_a_mistake_of_the_code_before_the_first_step_is_not_tried_again():
    mistake = FailureReason(kind="exception", message="KeyError on worker 0: 'a'", type="KeyError", rank=0, bug=True)
    died = FailureReason(kind="worker died", message="died")
    retries = Retries(FailureConf(max_failures=10))
    assert retries.wait_after(died, progress=False) is not None
    assert retries.wait_after(mistake, progress=False) is None
    assert "before the first step" in retries.refusal
    retries = Retries(FailureConf(max_failures=10))
    assert retries.wait_after(mistake, progress=True) is not None
    assert retries.wait_after(died, progress=False) is not None
    assert retries.wait_after(mistake, progress=False) is not None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("a"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"), True),
        (AssertionError(), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("the service is temporarily overloaded"), False),
        (OSError("no such file"), False),
        (ConnectionError("refused"), False),
        (json.JSONDecodeError("half a file", "{", 1), False),
    ],
)
def test_mistakes_of_the_code_are_told_from_failures_of_machines_and_services(error, expected):
    assert is_of_code(error) == expected


def test_an_error_of_the_code_is_a_mistake_unless_a_partner_or_memory_failed():
    bugs = [ending_of([raised(0, "RuntimeError", message, 1.0, bug=True)], []).bug for message in ("no", CLOSED, "OOM")]
    assert bugs == [True, False, False]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (32x7 and 64x10)", "Rows of 7 numbers reach a layer for 64"),
        ("Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 1, 8, 8] to have 3 channels, but got 1 "
         "channels instead", "Images have 1 channels, but the layer expects 3"),
        ("Target 10 is out of bounds.", "num_classes"),
        ("Expected all tensors to be on the same device, but found at least two devices", "tensor.to(x.device)"),
        ("element 0 of tensors does not require grad and does not have a grad_fn", "detach()"),
        ("mat1 and mat2 must have the same dtype, but got Double and Float", "tensor.to(other.dtype)"),
        ("Cannot use `LearningRateMonitor` callback with `Trainer` that has no logger.", "trainer.trainer_args"),
        ("No module named 'not_there.at_all'", "pip install not_there.at_all"),
        ("no luck", None),
    ],
)  # fmt: skip
def test_what_to_try_is_known_of_common_errors(message, expected):
    found = what_to_try("RuntimeError", message)
    assert found is None if expected is None else expected in found


KERAS = (
    "Exception encountered when calling Net.call().\n\n\x1b[1m{}\x1b[0m\n\nArguments received by Net.call():\n  • x=3"
)
TENSORFLOW = """in user code:

    File "/tmp/own.py", line 13, in rescale  *
        return output / 0
    File "/keras/utils.py", line 122, in error_handler  **
        raise e.with_traceback(filtered_tb) from None

    {}
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("plain\nof two lines"), "plain\nof two lines"),
        (ValueError(KERAS.format("wrong shape\nof two lines")), "wrong shape\nof two lines"),
        (KeyError(KERAS.format("scales")), "scales"),
        (ValueError(TENSORFLOW.format("ValueError: wrong shape")), "wrong shape\n"),
        (ValueError(TENSORFLOW.format("ValueError: " + KERAS.format("wrong shape"))), "wrong shape"),
    ],
)
def test_what_frameworks_put_around_a_message_is_left_out(error, expected):
    assert said_by(error) == expected


def test_another_exception_and_a_killed_worker_are_retried_without_progress():
    retries = Retries(FailureConf(max_failures=10))
    endings = [
        FailureReason(kind="worker died", message="died"),
        FailureReason(kind="exception", message="a", type="A"),
    ]
    assert all(retries.wait_after(ending, progress=False) is not None for ending in [*endings, *endings, *endings])


def test_a_mistake_of_the_user_is_not_retried():
    mistake = FailureReason(kind="exception", message="DatasetError on worker 0: no such column", final=True)
    assert Retries(FailureConf()).wait_after(mistake, progress=True) is None


def test_the_first_failure_after_progress_is_retried_at_once_and_the_next_ones_ever_later():
    retries = Retries(FailureConf(max_failures=10, backoff_seconds=2, max_backoff_seconds=10), chance=lambda: 1.0)
    died = FailureReason(kind="worker died", message="died")
    waits = [retries.wait_after(died, progress=progress) for progress in (True, False, False, False, False, True)]
    assert waits == [0, 2, 4, 8, 10, 0]


def test_chance_shortens_a_wait_to_half_of_it_at_most():
    retries = Retries(FailureConf(backoff_seconds=8), chance=lambda: 0.0)
    assert retries.wait_after(FailureReason(kind="worker died", message="died"), progress=False) == 4


def test_failures_and_machines_taken_away_have_limits_of_their_own():
    retries = Retries(FailureConf(max_failures=1, max_preemption_failures=2))
    taken, died = FailureReason(kind="preempted", message="taken"), FailureReason(kind="worker died", message="died")
    assert retries.wait_after(taken, progress=True) is not None
    assert retries.wait_after(died, progress=True) is not None
    assert retries.wait_after(taken, progress=True) is not None
    assert retries.wait_after(died, progress=True) is None
    assert retries.refusal == "run.failure.max_failures=1"
    assert retries.wait_after(taken, progress=True) is None
