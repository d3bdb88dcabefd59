"""Small datasets, runs, and worlds of two processes for the tests of the jax trainer."""

import os
import socket
import traceback
from multiprocessing import get_context

import numpy as np
from safetensors.numpy import load_file

from rtrain.datasets.base import Batch, Dataset, DatasetInfo, ResidentSplit, Split
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.jax.config import Conf

MLP = {"_target_": "rtrain.trainers.jax.models.MLP", "num_classes": "auto", "hidden": [16]}
DROPOUT = {**MLP, "dropout": 0.5}
ADAM = {"_target_": "optax.adam", "learning_rate": 0.01}


def make_conf(**keys):
    usual = {"model": MLP, "optimizer": ADAM, "global_batch_size": 32, "max_epochs": 3}
    return Conf(**{**usual, **keys})


def small_dataset(task="classification", shape=(1, 4, 4), num_rows=(150, 37), dtype="float32", split=ResidentSplit):
    """Three classes, or a linear function, that can be learned from a few rows."""
    rng = np.random.default_rng(0)
    centers, line = rng.normal(size=(3, *shape)), rng.normal(size=shape)
    splits = {}
    for name, count in zip(("train", "test"), num_rows, strict=True):
        y = rng.integers(0, 3, count)
        x = (centers[y] + rng.normal(size=(count, *shape)) / 2).astype("float32")
        target = y if task == "classification" else (x * line).reshape(count, -1).sum(1).astype("float32")
        if dtype == "uint8":
            x = np.clip(x * 40 + 128, 0, 255).astype("uint8")
        splits[name] = split({"x": x, "y": target})
    channels = shape[0]
    info = DatasetInfo(
        name="small",
        task=task,
        input_shape=shape,
        dtype=dtype,
        num_classes=3 if task == "classification" else None,
        num_rows={name: one.num_rows for name, one in splits.items()},
        fingerprint="",
        memory="resident",
        memory_reason="",
        mean=(0.1,) * channels,
        std=(2.0,) * channels,
    )
    return Dataset(info, splits)


class UnevenSplit(Split):
    """A stream of which rank 0 of two gets the first fifth, and rank 1 the rest; steps know nothing of each other."""

    def __init__(self, columns):
        self._columns, self.num_rows = columns, len(columns["y"])

    def batches(self, one):
        border = self.num_rows // 5 if one.world_size == 2 else self.num_rows
        own = range(*((0, border), (border, self.num_rows))[one.rank])
        size = one.global_batch_size // one.world_size
        for start in range(own.start, own.stop, size):
            rows = slice(start, min(start + size, own.stop))
            yield Batch(self._columns["x"][rows], self._columns["y"][rows], -1)

    def own_rows(self, rank, world_size):
        raise NotImplementedError


def fit(folder, conf, dataset=None, *, channel=None, rank=0, world_size=1, **run):
    """Train in the world that this process is in, and return what was sent."""
    from rtrain.trainers.epochs import EpochLoop
    from rtrain.trainers.jax.learner import JaxLearner
    from rtrain.trainers.jax.world import world_of

    channel = RecordingChannel() if channel is None else channel
    data = small_dataset() if dataset is None else dataset
    worker = make_worker(folder, conf, data, channel=channel, rank=rank, world_size=world_size, **run)
    world = world_of(worker)
    EpochLoop(worker, conf, JaxLearner(worker, world), world).run()
    return channel


def weights(folder):
    """Return the arrays of the newest checkpoint."""
    checkpoint = latest_checkpoint(folder)
    return {**load_file(checkpoint / "model.safetensors"), **load_file(checkpoint / "optimizer.safetensors")}


def assert_same(first, second, **tolerance):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], err_msg=name, **tolerance)


class World:
    """Two JAX processes that live for the whole test session."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            address = f"localhost:{free.getsockname()[1]}"
        context = get_context("spawn")
        self._pipes, self._processes = [], []
        for rank in range(2):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, rank, address), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def fit(self, folder, conf, dataset=None, stop_after=(None, None), **run):
        """Train as two ranks and return what each of them sent."""
        for pipe, stop in zip(self._pipes, stop_after, strict=True):
            pipe.send((folder, conf, dataset, stop, run))
        results = []
        for pipe in self._pipes:
            assert pipe.poll(90), "a rank hangs"
            results.append(pipe.recv())
        for error, _ in results:
            assert error is None, error
        return [channel for _, channel in results]

    def close(self):
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)
            process.kill()


def _serve(pipe, rank, address):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.distributed.initialize(address, 2, rank)
    while (job := pipe.recv()) is not None:
        folder, conf, dataset, stop, run = job
        try:
            channel = RecordingChannel(stop)
            pipe.send((None, fit(folder, conf, dataset, channel=channel, rank=rank, world_size=2, **run)))
        except BaseException:
            pipe.send((traceback.format_exc(), None))
    jax.distributed.shutdown()
