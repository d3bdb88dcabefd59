"""Runs on one rank and on two for the tests of the jax trainer."""

import os

from safetensors.numpy import load_file

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.jax.config import Conf

MLP = {"_target_": "rtrain.models.jax.MLP", "num_classes": "auto", "hidden": [16]}
DROPOUT = {**MLP, "dropout": 0.5}
ADAM = {"_target_": "optax.adam", "learning_rate": 0.01}
SGD = {"_target_": "optax.sgd", "learning_rate": 0.1}
DIVERGING = {**ADAM, "learning_rate": 1e38}
METRIC = {"_target_": "optax.softmax_cross_entropy_with_integer_labels"}
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def make_conf(**keys):
    usual = {"model": MLP, "optimizer": ADAM, "global_batch_size": 32, "max_epochs": 3}
    return Conf(**{**usual, **keys})


def fit(folder, conf, dataset=None, *, channel=None, rank=0, world_size=1, **run):
    """Train in the world that this process is in, and return what was sent."""
    from rtrain.trainers.jax.learner import JaxLearner
    from rtrain.trainers.jax.ranks import ranks_of
    from rtrain.trainers.loops.epochs.loop import EpochLoop

    channel = RecordingChannel() if channel is None else channel
    data = small_dataset() if dataset is None else dataset
    worker = make_worker(folder, conf, data, channel=channel, rank=rank, world_size=world_size, **run)
    ranks = ranks_of(worker)
    EpochLoop(worker, conf, JaxLearner(worker, ranks), ranks).run()
    return channel


def weights(folder):
    """Return the arrays of the newest checkpoint."""
    checkpoint = latest_checkpoint(folder)
    return {**load_file(checkpoint / "model.safetensors"), **load_file(checkpoint / "optimizer.safetensors")}


def join(rank, addresses):
    """Make this process one of two ranks."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.distributed.initialize(addresses[0], 2, rank)
