"""Rows that other processes transform are those that the process of training would have made."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from itertools import starmap
from types import ModuleType

import numpy as np
import pytest
import torch
from exactness import assert_exact
from torch_runs import EXACT, assert_same, fit, make_conf, make_worker

import rtrain
from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import EpochPlan
from rtrain.errors import ConfigError, TrainingError
from rtrain.schemas import schemas
from rtrain.testing.small_data import small_dataset, streamed
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.torch.config import LoaderConf
from rtrain.trainers.torch.inputs.row_processes import RowProcesses
from rtrain.trainers.torch.inputs.row_transform import RowTransform
from rtrain.trainers.torch.inputs.transforms import open_loader
from rtrain.trainers.torch.loop import train
from rtrain.trainers.torch.ranks import TorchRanks

DROP = {"_target_": "torch.nn.Dropout", "p": 0.3}
DROPPED = "{_target_: torch.nn.Dropout, p: 0.3}"
PAD = {"_target_": "torch.nn.ZeroPad2d", "padding": 1}
SOURCES = pytest.mark.parametrize(
    "keys", [{}, {"dtype": "uint8"}, {"split": streamed}], ids=["memory", "uint8", "stream"]
)


@pytest.fixture
def own_code(monkeypatch):
    """A module of the user's, which the config allows."""
    module = ModuleType("row_code")

    def draw(row):
        import random

        return row + np.float32(np.random.random() + random.random()) + torch.rand(())

    def fail(row):
        if multiprocessing.parent_process() is not None:
            raise ValueError("this row is too large")
        return row

    def shout(row):
        raise ConfigError("rows are never good", "Leave it.")

    def die(row):
        os.kill(os.getpid(), signal.SIGKILL)

    def grow(row):
        return row.expand(1, 2 + int(row[0, 0, 0]), 2)

    def widen(row):
        return row.double() if row[0, 0, 0] else row

    for function in (draw, fail, shout, die, grow, widen):
        function.__module__ = "row_code"
        setattr(module, function.__name__, function)
    monkeypatch.setitem(sys.modules, "row_code", module)
    return module


def transform_by(name):
    return RowTransform([{"_target_": f"row_code.{name}"}], "trainer.transform", Builder(("row_code.*",)))


def work(num_batches=7, rows=5):
    draw = np.random.default_rng(0)
    for number in range(num_batches):
        seeds = np.arange(rows, dtype=np.uint32) + number * rows
        yield torch.from_numpy(draw.normal(size=(rows, 1, 2, 2)).astype("float32")), seeds


def children():
    return {process.pid for process in multiprocessing.active_children()}


@pytest.mark.parametrize(("num_workers", "prefetch"), [(1, 1), (2, 2), (3, 4)])
def test_batches_come_in_their_order_with_the_random_numbers_of_their_rows(own_code, num_workers, prefetch):
    transform = transform_by("draw")
    expected = [transform(*one) for one in work()]
    processes = RowProcesses(transform, "trainer.transform", num_workers, prefetch)
    for _ in range(2):
        found = list(processes(work()))
        assert len(found) == 7
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(("name", "other"), [("grow", r"float32 of shape \(1, 3, 2\)"), ("widen", "float64 of shape")])
def test_rows_that_make_no_batch_are_told_by_two_that_differ(own_code, name, other, num_workers):
    transform = transform_by(name)
    work = torch.tensor([0.0, 0.0, 1.0]).reshape(3, 1, 1, 1).expand(3, 1, 1, 2), np.arange(3)
    prepared = RowProcesses(transform, "trainer.transform", 1, 2)([work]) if num_workers else starmap(transform, [work])
    message = rf"trainer\.transform: its rows differ: float32 of shape \(1, \d, 2\), and {other}"
    with pytest.raises(ConfigError, match=message):
        next(iter(prepared))


def test_a_pass_may_be_left_and_the_next_one_begins_at_its_first_batch(own_code):
    transform, before = transform_by("draw"), children()
    processes = RowProcesses(transform, "trainer.transform", 2, 2)
    left = processes(work())
    first = next(left)
    left.close()
    there = children()
    assert len(there - before) == 2
    assert torch.equal(next(processes(work())), first)
    assert children() == there
    del processes
    gc.collect()
    assert not children() & (there - before)


def test_other_random_numbers_go_on_as_if_there_were_no_processes(own_code):
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    list(RowProcesses(transform_by("draw"), "trainer.transform", 1, 1)(work(1)))
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(("num_workers", "prefetch"), [(0, 2), (1, 1), (2, 3)])
def test_the_config_says_how_many_processes_prepare_how_many_batches(num_workers, prefetch):
    dataset, before, read = small_dataset(), children(), []
    conf = make_conf(transform=[DROP], loader=LoaderConf(num_workers=num_workers, prefetch=prefetch))
    alone = TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    loader = open_loader(dataset.splits["train"], dataset.info, alone, conf, Builder(), training=True)

    class Counting:
        def batches(self, plan):
            for batch in dataset.splits["train"].batches(plan):
                read.append(len(batch.y))
                yield batch

    loader._split = Counting()
    steps = loader.steps(EpochPlan(rank=0, world_size=1, global_batch_size=5, seed=0, shuffle=False))
    next(steps)
    assert len(children() - before) == num_workers
    assert len(read) == 1 + num_workers * prefetch


@SOURCES
def test_a_run_trains_the_same_with_any_number_of_processes(tmp_path, keys):
    dataset, parts = small_dataset(**keys), {"transform": [DROP, PAD], "eval_transform": [PAD]}
    one, expected = fit(tmp_path / "0", make_conf(**parts), dataset=dataset)
    two, found = fit(tmp_path / "2", make_conf(**parts, loader=LoaderConf(num_workers=2)), dataset=dataset)
    assert_same(found, expected, **EXACT)
    assert [event for event in one.metrics.items() if "per_second" not in event[0]] == [
        event for event in two.metrics.items() if "per_second" not in event[0]
    ]


@SOURCES
def test_a_run_that_is_interrupted_ends_with_the_same_numbers(tmp_path, keys):
    dataset, conf = small_dataset(**keys), make_conf(transform=[DROP], max_epochs=3, loader=LoaderConf(num_workers=1))
    assert_exact(tmp_path, lambda folder, channel: fit(folder, conf, channel=channel, dataset=dataset), [1, 4])


@pytest.mark.parametrize("rank", [0, 1])
@SOURCES
def test_each_rank_gets_its_own_rows(keys, rank):
    """129 rows in steps of 64: the last step has one row, so that a rank gets none."""
    dataset, ranks = (
        small_dataset(**keys, num_rows=(129, 37)),
        TorchRanks(rank=rank, size=2, device=torch.device("cpu")),
    )
    one = EpochPlan(rank=rank, world_size=2, global_batch_size=64, seed=3, shuffle=True)
    steps = []
    for num_workers in (0, 2):
        conf = make_conf(transform=[DROP, PAD], loader=LoaderConf(num_workers=num_workers))
        loader = open_loader(dataset.splits["train"], dataset.info, ranks, conf, Builder(), training=True)
        steps.append([(step.x, step.y) for step in loader.steps(one)])
    assert len(steps[0]) == len(steps[1]) == 3
    for own, others in zip(*steps, strict=True):
        assert all(map(torch.equal, own, others))


def test_a_whole_run_with_its_check_trains_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "num_workers=0",
        "epochs=1",
        "dataset.limit=200",
        "trainer.transform=[{_target_: torch.nn.Dropout, p: 0.1}]",
    ]
    runs = [rtrain.fit("mlp", [*words, f"trainer.loader.num_workers={number}"], quiet=True) for number in (0, 1)]
    assert [run.status for run in runs] == ["succeeded"] * 2
    assert runs[0].metrics["val/loss"] == runs[1].metrics["val/loss"]


ENDS_EARLY = f"""
import sys
from rtrain.cli import main
words = ["num_workers=0", "trainer.max_steps=100000", "trainer.max_seconds=3", "trainer.transform=[{DROPPED}]"]
sys.argv = ["rtrain", "fit", "mlp", *words, "trainer.max_epochs=null", "trainer.loader.num_workers=2"]
left = []
import rtrain.trainers.torch.inputs.row_processes as processes
made = processes.RowProcesses.__init__
processes.RowProcesses.__init__ = lambda self, *args: (left.append(self), made(self, *args))[1]
sys.exit(main())
"""


def test_processes_that_are_left_when_python_ends_are_no_error(tmp_path):
    done = subprocess.run([sys.executable, "-c", ENDS_EARLY], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "time limit" in done.stdout


def test_an_error_of_the_transform_names_its_key_and_the_users_line(own_code, tmp_path):
    conf = make_conf(transform=[{"_target_": "row_code.fail"}], loader=LoaderConf(num_workers=2))
    worker = make_worker(tmp_path, conf, dataset=small_dataset(), channel=RecordingChannel())
    worker.builder = Builder(("row_code.*",))
    with pytest.raises(TrainingError, match=r"trainer.transform failed: ValueError: this row is too large") as caught:
        train(worker)
    assert caught.value.cause_type == "ValueError"


def test_an_error_of_rtrain_stays_what_it_is(own_code):
    with pytest.raises(
        ConfigError,
        match=r"^rows are never good\.?\n?.*Leave it.",
    ) as caught:
        list(RowProcesses(transform_by("shout"), "trainer.transform", 1, 1)(work()))
    assert caught.value.hint == "Leave it."


def test_a_process_that_is_killed_is_an_error_that_names_the_key(own_code):
    with pytest.raises(TrainingError, match=r"a process of trainer.loader ended: .*\n.*trainer.loader.num_workers"):
        list(RowProcesses(transform_by("die"), "trainer.transform", 2, 2)(work()))


def test_signals_to_all_processes_of_the_group_are_for_training_alone(own_code):
    before = children()
    processes = RowProcesses(transform_by("draw"), "trainer.transform", 2, 2)
    list(processes(work()))
    assert all(os.getpgid(pid) == pid for pid in children() - before)
    assert len(children() - before) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer.loader.num_workers=2"], "rows are neither transformed nor read from image files"),
        (["trainer.transform=[{_target_: torch.nn.Identity}]", "trainer.loader.prefetch=3"], r"loader\.num_workers=2"),
    ],
)
def test_processes_without_work_are_refused(words, said):
    with pytest.raises(ConfigError, match=said), Session("mlp", words, schemas()) as session:
        session.check()
