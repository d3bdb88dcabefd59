"""Runs on one rank and on two for the tests of the tensorflow trainer."""

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.tensorflow import environment

environment.prepare_import()

from rtrain.trainers.tensorflow.config import Conf  # noqa: E402

MODELS = "rtrain.models.keras"
MLP = {"_target_": f"{MODELS}.mlp", "input_shape": "auto", "num_classes": "auto", "hidden": [16]}
DROPOUT = {**MLP, "dropout": 0.5}
ADAM = {"_target_": "keras.optimizers.Adam", "learning_rate": 0.01}
SGD = {"_target_": "keras.optimizers.SGD", "learning_rate": 0.1}
DIVERGING = {**ADAM, "learning_rate": 1e38}
METRIC = {"_target_": "keras.metrics.SparseTopKCategoricalAccuracy", "k": 2}
CLOSE = {"rtol": 2e-4, "atol": 1e-5}


def make_conf(**keys):
    usual = {"model": MLP, "optimizer": ADAM, "global_batch_size": 32, "max_epochs": 3}
    return Conf(**{**usual, **keys})


def fit(folder, conf, dataset=None, *, channel=None, rank=0, world_size=1, **run):
    """Train in the world that this process is in, and return what was sent."""
    from rtrain.trainers.loops.epochs.loop import EpochLoop
    from rtrain.trainers.tensorflow.learner import KerasLearner
    from rtrain.trainers.tensorflow.ranks import TensorflowRanks

    channel = RecordingChannel() if channel is None else channel
    data = small_dataset() if dataset is None else dataset
    worker = make_worker(folder, conf, data, channel=channel, rank=rank, world_size=world_size, **run)
    ranks = TensorflowRanks(rank, world_size)
    if world_size > 1:
        object.__setattr__(ranks, "_keys", KEYS)
    learner = KerasLearner(worker, ranks)
    EpochLoop(worker, conf, learner, ranks).run()
    learner.close()
    return channel


KEYS = iter(range(1, 1_000_000))
"""The trainings of a process meet at places of their own."""


def weights(folder):
    """Return the arrays of the newest checkpoint."""
    import h5py
    from safetensors.numpy import load_file

    checkpoint = latest_checkpoint(folder)
    found = {}
    with h5py.File(checkpoint / "model.weights.h5") as file:
        file.visititems(lambda name, one: found.update({name: one[()]}) if isinstance(one, h5py.Dataset) else None)
    return {**found, **load_file(checkpoint / "training.safetensors")}


def join(rank, addresses):
    """Make this process one of two ranks."""
    import tensorflow as tf

    from rtrain.trainers.tensorflow.ranks import connect

    tf.config.experimental.enable_op_determinism()
    connect(addresses, rank)
