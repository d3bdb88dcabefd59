"""Workers, datasets and two-process worlds for the tests of the torch trainer; ranks talk by gloo."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.runs.events import Event
from rtrain.testing import workers
from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.loop import train

MODELS = "rtrain.models.torch"
MLP = {"_target_": f"{MODELS}.MLP", "in_features": "auto", "num_classes": "auto", "hidden": [16]}
GPT = {
    "_target_": f"{MODELS}.GPT",
    "vocab_size": "auto",
    "block_size": "auto",
    "num_layers": 2,
    "num_heads": 2,
    "width": 16,
}
SGD = {"_target_": "torch.optim.SGD", "lr": 0.1, "momentum": 0.9}


def small_dataset(num_train=150, num_test=37, task="classification", shape=(1, 8, 8), dtype="float32", seed=0):
    """Three classes, or a linear function, that can be learned from a few rows."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(3, *shape))
    columns = {}
    for name, count in {"train": num_train, "test": num_test}.items():
        labels = rng.integers(0, 3, count)
        x = (centers[labels] + rng.normal(size=(count, *shape))).astype("float32")
        if dtype == "uint8":
            x = np.clip(x * 30 + 128, 0, 255).astype("uint8")
        y = labels.astype("int64") if task == "classification" else x.reshape(count, -1)[:, :3].sum(1)
        columns[name] = {"x": x, "y": y}
    x = columns["train"]["x"].astype("float32") / (255 if dtype == "uint8" else 1)
    axes = (0, *range(2, x.ndim))
    scale = {"mean": tuple(x.mean(axes).tolist()), "std": tuple(x.std(axes).tolist())}
    return in_memory(columns, task, num_classes=3 if task == "classification" else None, **scale)


def token_dataset(num_train=60, num_val=14, length=8, vocab_size=7, seed=0):
    """Sequences that count on by 1 or 2: the token before tells which, so that attention is needed."""
    rng = np.random.default_rng(seed)
    columns = {}
    for name, count in {"train": num_train, "val": num_val}.items():
        start, stride = rng.integers(0, vocab_size, (count, 1)), rng.integers(1, 3, (count, 1))
        tokens = (start + stride * np.arange(length + 1)) % vocab_size
        columns[name] = {"x": tokens[:, :-1], "y": tokens[:, 1:]}
    return in_memory(columns, "language-modeling", dtype="int64", num_classes=vocab_size)


def make_worker(folder, conf, *, dataset=None, **keys):
    """A worker whose run directory is ``folder``."""
    return workers.make_worker(folder, conf, dataset or small_dataset(), **keys)


def make_conf(**keys):
    """A conf for a small MLP and two epochs, changed by ``keys``."""
    limit = {} if keys.keys() & {"max_epochs", "max_steps", "max_seconds"} else {"max_epochs": 2}
    size = {} if keys.keys() & {"batch_size", "global_batch_size"} else {"batch_size": 64}
    return Conf(**{"model": MLP, "optimizer": SGD, **limit, **size, **keys})


def fit(folder, conf, **keys):
    """Train in this process and return the channel and the weights of the last checkpoint."""
    channel = keys.pop("channel", None) or RecordingChannel()
    train(make_worker(folder, conf, channel=channel, **keys))
    return channel, weights(folder)


def metrics_of(records):
    """Return the newest value of each metric, speeds left out."""
    found = {}
    for record in records:
        if isinstance(record, Event):
            found |= {name: value for name, value in record.metrics.items() if "per_second" not in name}
    return found


def weights(folder, name="model.safetensors"):
    from safetensors.torch import load_file

    return load_file(latest_checkpoint(Path(folder)) / name)


def assert_same(first, second, **tolerance):
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], msg=lambda text, n=name: f"{n}: {text}", **tolerance)


EXACT = {"rtol": 0, "atol": 0}


def join(rank, addresses):
    """Make this process one of the ranks."""
    os.environ.pop("OMP_NUM_THREADS", None)
    # What Ray Train tells each worker, and Accelerate and DeepSpeed ask for.
    size = str(len(addresses))
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{addresses[0]}", rank=rank, world_size=len(addresses))


def fit_rank(rank, folder, conf, **keys):
    """Train as one of several ranks and return what this rank sent."""
    stop_after = keys.pop("stop_after", {}).get(rank)
    channel = RecordingChannel(stop_after)
    train(make_worker(folder, conf, channel=channel, rank=rank, world_size=dist.get_world_size(), **keys))
    return channel.records
