"""What is tried before the first step: honest models pass, and what depends on the batches of an evaluation is told."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras_runs import RecordingChannel, fit, make_conf

from rtrain.datasets.base import ResidentSplit
from rtrain.testing.small_data import in_memory, small_dataset, streamed

HERE = __name__


class Cholesky(keras.Model):
    """Takes four numbers for a matrix that is positive definite."""

    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(3)

    def call(self, x):
        return self.head(tf.reshape(tf.linalg.cholesky(tf.reshape(x[:, 1:], (-1, 2, 2))), (-1, 4)))


class OneHot(keras.Model):
    """Takes the first number for a category from 1 to 4."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(4, 3)

    def call(self, x):
        return self.table(tf.cast(x[:, 0], "int32") - 1)


class Checked(keras.Model):
    """Divides rows by their lengths, and makes sure that it can."""

    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(3)

    def call(self, x):
        length = tf.norm(x, axis=1, keepdims=True)
        with tf.control_dependencies([tf.debugging.assert_positive(length)]):
            return self.head(x / length)


class Groups(keras.Model):
    """Compares rows with those of their group of eight."""

    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(3)

    def call(self, x):
        groups = tf.reshape(x, (-1, 8, 5))
        return self.head(tf.reshape(groups - tf.reduce_mean(groups, 1, keepdims=True), (-1, 5)))


class Balanced(keras.losses.Loss):
    """Each class counts as much as another among the rows that it sees at once."""

    def call(self, target, output):
        losses = keras.losses.sparse_categorical_crossentropy(target, output, from_logits=True)
        share = tf.gather(tf.math.bincount(tf.cast(target, "int32"), minlength=3), tf.cast(target, "int32"))
        return losses / tf.cast(share, losses.dtype)


class Plain(keras.losses.SparseCategoricalCrossentropy):
    """A mean over rows."""


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def rows_of(split):
    places = np.arange(16)
    x = np.stack([places % 4 + 1, *(np.full(16, value) for value in (2, 1, 1, 2))], axis=1).astype("float32")
    return in_memory({"train": {"x": x, "y": places % 3}}, "classification", split, num_classes=3)


@pytest.mark.parametrize("split", [ResidentSplit, streamed])
@pytest.mark.parametrize("model", [Cholesky, OneHot, Checked, Groups])
def test_a_model_that_takes_the_rows_trains_whatever_it_does_with_zeros(tmp_path, model, split):
    conf = make_conf(model={"_target_": f"{HERE}.{model.__name__}"}, global_batch_size=8, max_epochs=1)
    channel = fit(tmp_path, conf, rows_of(split))
    told = channel.notices
    assert all(text.startswith("tried with zeros, as the rows are streamed: trainer.model") for text in told)
    assert split is not ResidentSplit or told == []


@pytest.mark.parametrize(("name", "size", "told"), [("Balanced", 5, 1), ("Balanced", 37, 0), ("Plain", 5, 0)])
def test_a_loss_of_an_evaluation_that_depends_on_its_batches_is_told_once(tmp_path, name, size, told):
    loss, channel = {"_target_": f"{HERE}.{name}"}, RecordingChannel()
    if name == "Plain":
        loss["from_logits"] = True
    fit(tmp_path, make_conf(loss=loss, eval_batch_size=size, max_epochs=1), small_dataset(), channel=channel)
    texts = channel.notices
    assert len(texts) == told
    assert all("trainer.eval_batch_size=37" in text for text in texts)
