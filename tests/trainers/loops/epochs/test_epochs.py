"""The loop of epochs with any numbers of workers: which rows they take, what they draw, where they go on."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rtrain.datasets.base import ResidentSplit
from rtrain.testing.small_data import in_memory, streamed
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.epochs.conf import EpochsConf
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.epochs.loop import EpochLoop

NUM_ROWS = 83


class Ranks:
    """One of several ranks that are threads."""

    def __init__(self, rank, shared):
        self.rank, self._shared = rank, shared
        self.size = len(shared["values"])

    def max(self, values):
        return self._all(values, np.max)

    def sum(self, values):
        return self._all(values, np.sum)

    def _all(self, values, how):
        self._shared["values"][self.rank] = list(values)
        self._shared["barrier"].wait(30)
        found = how(np.array(self._shared["values"], float), axis=0).tolist()
        self._shared["barrier"].wait(30)
        return found


class Noting(Learner):
    """Learns nothing, and notes the rows of each step."""

    def __init__(self, rank):
        self.rank, self.taken = rank, []

    def train_step(self, batch, step):
        # What is drawn is looked at on one rank only: threads share their random numbers.
        self.taken.append((step, batch.y.tolist(), (random.random(), np.random.random())))
        return len(batch.y)

    def step_losses(self, taken):
        return [(0.0, float(rows)) for rows in taken]

    def evaluate(self, batches):
        random.random(), np.random.random()
        rows = [len(batch.y) for batch in batches]
        return {"loss": float(sum(rows)), "most": float(max(rows))}

    def snapshot(self):
        return lambda folder: None

    def load(self, folder):
        pass

    def describe(self):
        return {}


def dataset(split):
    rows = np.arange(NUM_ROWS)
    columns = {"x": rows[:, None].astype("float32"), "y": rows.astype("float32")}
    return in_memory({"train": columns, "test": columns}, "regression", split)


def fit(folder, data, num_workers, stop_after=None, checkpoint=None, channels=None, **conf):
    """Train on so many ranks, and return what each noted."""
    shared = {"values": [[]] * num_workers, "barrier": threading.Barrier(num_workers)}
    conf = EpochsConf(**{"max_epochs": 2, **conf})

    def run(rank):
        channel = RecordingChannel(stop_after if rank == num_workers - 1 else None)
        if channels is not None:
            channels.append(channel)
        keys = {"checkpoint": checkpoint or {}, "rank": rank, "world_size": num_workers}
        worker = make_worker(folder, conf, data, channel=channel, **keys)
        learner = Noting(rank)
        with worker.checkpoints.finishing():
            EpochLoop(worker, conf, learner, Ranks(rank, shared)).run()
        return learner.taken

    with ThreadPoolExecutor(num_workers) as pool:
        return list(pool.map(run, range(num_workers)))


def rows_of(ranks):
    """Return the rows of each step of all ranks together."""
    return [[row for _, rows, _ in step for row in rows] for step in zip(*ranks, strict=True)]


@pytest.mark.parametrize("split", [ResidentSplit, streamed])
@pytest.mark.parametrize("workers", [(1, 2), (2, 1), (2, 3), (3, 2, 1), (2, 2)])
@pytest.mark.parametrize("size", [{"batch_size": 5}, {"global_batch_size": 12}], ids=str)
@pytest.mark.parametrize("stop", [0, 3])
def test_each_row_is_taken_once_in_an_epoch_that_other_numbers_of_workers_end(tmp_path, split, workers, size, stop):
    data, steps = dataset(split), []
    for number, num_workers in enumerate(workers):
        last = number == len(workers) - 1
        steps += rows_of(fit(tmp_path, data, num_workers, None if last else stop, **size))
    taken = [row for step in steps for row in step]
    assert len(taken) == 2 * NUM_ROWS
    for epoch in (taken[:NUM_ROWS], taken[NUM_ROWS:]):
        assert sorted(epoch) == list(range(NUM_ROWS))
    assert taken[:NUM_ROWS] != taken[NUM_ROWS:]


@pytest.mark.parametrize("split", [ResidentSplit, streamed])
def test_an_interrupted_run_takes_and_draws_what_an_uninterrupted_one_does(tmp_path, split):
    conf = {"global_batch_size": 8, "max_epochs": 3, "eval_every_steps": 3}
    (whole,) = fit(tmp_path / "whole", dataset(split), 1, **conf)
    parts = []
    for stop in (0, 1, 5, 3, 2, None):
        random.random(), np.random.random()
        parts += fit(tmp_path / "parts", dataset(split), 1, stop, **conf)[0]
    assert parts == whole
    assert len({drawn for _, _, drawn in whole}) == len(whole)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_evaluation_takes_so_many_rows_of_each_worker_at_a_time(tmp_path, num_workers):
    channels = []
    fit(tmp_path, dataset(ResidentSplit), num_workers, channels=channels, eval_batch_size=7, batch_size=40)
    found = next(channel.metrics for channel in channels if channel.metrics)
    assert (found["test/most"], found["test/loss"]) == (7, NUM_ROWS // num_workers)


@pytest.mark.parametrize("name", ["train/epoch_loss", "train/loss"])
@pytest.mark.parametrize(("num_workers", "stop"), [(1, None), (1, 13), (2, None)])
def test_a_value_is_judged_once_however_many_evaluations_see_it(tmp_path, name, num_workers, stop):
    """An epoch has 10 steps, after which both losses are reported; each second step is evaluated."""
    channels = []
    keys = {
        "global_batch_size": 9,
        "max_epochs": 4,
        "eval_every_steps": 2,
        "early_stopping": EarlyStoppingConf(monitor=name, mode="min", patience=4),
        "checkpoint": {"best": {"keep": 3}, "every_steps": 2},
    }
    for stop_after in (stop, None) if stop else (None,):
        ranks = fit(tmp_path, dataset(ResidentSplit), num_workers, stop_after, channels=channels, **keys)
    assert ranks[0][-1][0] == 39
    scored = [record["step"] for one in channels for record in one.checkpoints if record["score"]]
    assert sorted({*scored}) == [10, 20, 30, 40]
