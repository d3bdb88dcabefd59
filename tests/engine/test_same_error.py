"""The same error is recognised whatever ranks, hosts, times and places its message names: messages are generated."""

import itertools
import random
import tempfile
import uuid

import pytest

from rtrain.config.run_conf import FailureConf
from rtrain.engine.failures import FailureReason, Retries
from rtrain.engine.same_error import lasting


def number(rng, most=9):
    return rng.randint(0, most)


CHANCE = {
    "rank": lambda rng: str(number(rng)),
    "list": lambda rng: ", ".join(str(number(rng)) for _ in range(rng.randint(1, 3))),
    "address": lambda rng: hex(rng.getrandbits(47)),
    "pid": lambda rng: str(rng.randint(2, 4_000_000)),
    "ip": lambda rng: ".".join(str(rng.randint(0, 255)) for _ in range(4)),
    "port": lambda rng: str(rng.randint(1024, 65535)),
    "clock": lambda rng: f"{number(rng, 23):02}:{number(rng, 59):02}:{number(rng, 59):02}",
    "date": lambda rng: f"20{rng.randint(20, 40)}-0{rng.randint(1, 9)}-1{number(rng)}",
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
    "actor": lambda rng: f"a1{rng.getrandbits(120):030x}",
    "temporary": lambda rng: f"{tempfile.gettempdir()}/tmp{rng.getrandbits(32):x}/{number(rng)}",
    "seconds": lambda rng: f"{rng.uniform(0, 100):.2f}",
    "ipv6": lambda rng: ":".join(f"{rng.getrandbits(16):x}" for _ in range(8)),
}
MESSAGES = [
    "'Model' object at {address} has no attribute 'heda'",
    "AttributeError on worker {rank}: 'Net' object has no attribute 'x'",
    "ValueError on worker {rank} (worker {list} failed after it): rank {rank} has had enough",
    "[{clock}] /workspace/src/data/data.cc:501: Check failed: valid: Label contains NaN",
    "[{date} {clock}.123] [E pair.cc:547] Connection closed by peer [{ip}]:{port}",
    "{date}T{clock}.123+00:00 lost <socket.socket fd=3, raddr=localhost:{port}>",
    "[rank{rank}]: RuntimeError in worker {rank} (pid={pid}, ip={ip}): bad",
    "DataLoader worker (pid(s) {pid}, {pid}) exited unexpectedly",
    "ray::Worker.run() (pid={pid}, ip={ip}, actor_id={actor}, repr=<W object at {address}>)",
    "[Errno 2] No such file or directory: '{temporary}'",
    "can't read {temporary}: it is empty",
    "Timed out after {seconds} seconds waiting for [{ipv6}]:{port}",
    "request {uuid} failed on cuda:{rank}",
    "connection to node-{rank}.cluster.local:{port} refused, local_rank={rank}, Rank {rank}",
]


def filled(message, rng):
    while "{" in message:
        before, _, rest = message.partition("{")
        name, _, after = rest.partition("}")
        message = f"{before}{CHANCE[name](rng)}{after}"
    return message


@pytest.mark.parametrize("message", MESSAGES)
def test_an_error_that_comes_again_is_recognised(message):
    rng = random.Random(message)
    texts = [filled(message, rng) for _ in range(30)]
    assert len({lasting(text) for text in texts}) == 1, sorted({lasting(text) for text in texts})[:3]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("shapes cannot be multiplied (32x10 and 20x5)", "shapes cannot be multiplied (32x10 and 21x5)"),
        ("index 7 is out of bounds for axis 0 with size 5", "index 8 is out of bounds for axis 0 with size 5"),
        ("train.py:33 failed", "train.py:34 failed"),
        ("train.py:1033 failed", "train.py:1034 failed"),
        ("src/data.cc:501: Check failed", "src/data.cc:777: Check failed"),
        ("no column 'a1'", "no column 'a2'"),
        ("[Errno 2] No such file: '/data/a.csv'", "[Errno 2] No such file: '/data/b.csv'"),
        ("'NoneType' object has no attribute 'a'", "'NoneType' object has no attribute 'b'"),
        ("expected scalar type Float but found Double", "expected scalar type Double but found Float"),
        ("Label has 3 classes", "Label has 4 classes"),
    ],
)
def test_numbers_and_names_that_matter_make_another_error(first, second):
    assert lasting(first) != lasting(second)


def raised(rank, message, kind="exception", type_="ValueError"):
    return FailureReason(kind=kind, message=f"{type_} on worker {rank}: {message}", rank=rank, type=type_)


def retried(*endings):
    retries = Retries(FailureConf(max_failures=10))
    return [retries.wait_after(one, progress=False) is not None for one in endings]


def test_the_same_exception_of_another_rank_ends_the_run():
    assert retried(raised(0, "no <M at 0x7f01>"), raised(1, "no <M at 0x7fff>")) == [True, False]


def test_another_type_or_another_text_is_retried():
    assert retried(raised(0, "a"), raised(0, "a", type_="KeyError"), raised(0, "b", type_="KeyError")) == [True] * 3


def test_memory_that_is_not_enough_is_the_same_whatever_was_free():
    texts = ["Tried to allocate 2.00 GiB, 1.3 GiB are free", "Tried to allocate 1.00 GiB, 0.7 GiB are free"]
    assert retried(*(raised(0, text, kind="out of memory") for text in texts)) == [True, False]


def test_a_gpu_without_enough_memory_is_the_same_whoever_else_computes_on_it():
    others = [[], ["Process 723 has 786.00 MiB"], ["Process 713 has 1.09 GiB", "Process 9 has 518.00 MiB"]]
    own = "Including non-PyTorch memory, this process has 612.00 MiB"
    for before, after in itertools.product(others, others):
        first, second = (" memory in use. ".join([*some, own, *rest, ""]) for some, rest in ((before, []), ([], after)))
        texts = [f"Tried to allocate 2.00 GiB. GPU 0 has 3.10 GiB free. {text}It is full." for text in (first, second)]
        assert retried(*(raised(0, text, kind="out of memory") for text in texts)) == [True, False]


def test_a_worker_that_dies_again_is_retried():
    assert retried(*[FailureReason(kind="worker died", message="died", rank=0)] * 4) == [True] * 4
