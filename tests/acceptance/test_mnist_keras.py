"""The convolutional network of Keras's example on MNIST reaches its accuracy.

    RTRAIN_TEST_DATA=DIR pytest -m slow tests/acceptance/test_mnist_keras.py

The example ("Simple MNIST convnet") takes two convolutions of 32 and 64 channels, dropout of one half, Adam, 128 rows
per step, and the last tenth of the training images to validate: 0.988 there after 3 epochs.
"""

from dataclasses import replace

import pytest

from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.datasets.registry import load_source
from rtrain.datasets.sources.mnist import MnistConf
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.tensorflow.config import Conf
from rtrain.trainers.tensorflow.plugin import Plugin

CONF = Conf(
    model={
        "_target_": "rtrain.models.keras.cnn",
        "input_shape": "auto",
        "num_classes": "auto",
        "channels": [32, 64],
        "dropout": 0.5,
        "padding": "valid",
    },
    optimizer={"_target_": "keras.optimizers.Adam", "learning_rate": 0.001},
    max_epochs=3,
    batch_size=128,
)


def split_as_the_example(data):
    """The first nine tenths to train on, the rest to validate."""
    columns = data.splits["train"].columns
    cut = data.info.num_rows["train"] * 9 // 10
    parts = {"train": slice(None, cut), "val": slice(cut, None)}
    splits = {name: ResidentSplit({key: one[rows] for key, one in columns.items()}) for name, rows in parts.items()}
    return Dataset(replace(data.info, num_rows={name: one.num_rows for name, one in splits.items()}), splits)


def test_the_convnet_of_the_example_reaches_0_988(tmp_path, data):
    mnist = load_source("mnist").load(MnistConf(path=str(data("mnist")), normalize=False))
    channel = RecordingChannel()
    Plugin().train_loop(CONF)(make_worker(tmp_path, CONF, split_as_the_example(mnist), channel=channel))
    assert channel.checkpoints[-1]["epoch"] == 3
    assert channel.metrics["val/accuracy"] == pytest.approx(0.988, abs=0.003)
