"""The declared loop on one worker, and parity with ``model.fit``."""

from dataclasses import replace

import keras
import keras_runs
import numpy as np
import pytest
from epochs_contract import EpochsOnOneRank, assert_same
from exactness import assert_exact
from keras_runs import ADAM, DROPOUT, MLP, MODELS, SGD, fit, make_conf, weights

from rtrain.config.run_conf import FailureConf
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset
from rtrain.errors import ConfigError, TrainingError
from rtrain.models.keras import mlp
from rtrain.testing.small_data import small_dataset, small_text, with_infinite_row
from rtrain.testing.workers import RecordingChannel, make_worker, newest
from rtrain.trainers.tensorflow.build import build_callbacks
from rtrain.trainers.tensorflow.learner import WEIGHTS, KerasLearner
from rtrain.trainers.tensorflow.loop import train
from rtrain.trainers.tensorflow.predictor import load_predictor
from rtrain.trainers.tensorflow.ranks import TensorflowRanks

HERE = f"{__name__}"


def normalized(input_shape, num_classes, activation=None):
    """A model with batch statistics, and weights that grow costly."""
    return keras.Sequential(
        [
            keras.layers.Input(tuple(input_shape)),
            keras.layers.Flatten(),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(num_classes, activation=activation, kernel_regularizer="l2"),
        ]
    )


def bigrams(input_shape, vocab_size, mask_zero=False):
    """Predicts the next token from the one before."""
    layers = [keras.layers.Embedding(vocab_size, 8, mask_zero=mask_zero), keras.layers.Dense(vocab_size)]
    return keras.Sequential([keras.layers.Input(tuple(input_shape), dtype="int64"), *layers])


class Subclass(keras.Model):
    """A model by subclassing that doesn't ask whether it is trained."""

    def __init__(self, num_classes):
        super().__init__()
        self.flatten, self.dense = keras.layers.Flatten(), keras.layers.Dense(num_classes)

    def call(self, x):
        return self.dense(self.flatten(x))


class TrainsItself(Subclass):
    """Has a train step of its own."""

    def train_step(self, data):
        return {}


class StopsAfter(keras.callbacks.Callback):
    """Ends training after an epoch, and remembers what it was told."""

    told = ()

    def __init__(self, epoch):
        super().__init__()
        self.epoch, self.seen = epoch, []

    def on_epoch_begin(self, epoch, logs=None):
        self.seen.append(f"begin {epoch}")

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(sorted(logs))
        self.model.stop_training = epoch + 1 == self.epoch

    def on_train_end(self, logs=None):
        type(self).told = self.seen


def local(name, **keys):
    """Name something of this file in a config."""
    return {"_target_": f"{HERE}.{name}", **keys}


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


ALL_MODELS = {
    "dropout": DROPOUT,
    "cnn": {"_target_": f"{MODELS}.cnn", "input_shape": "auto", "num_classes": "auto", "channels": [4]},
    "batch statistics": local("normalized", input_shape="auto", num_classes="auto"),
    "probabilities": local("normalized", input_shape="auto", num_classes="auto", activation="softmax"),
    "subclass": local("Subclass", num_classes="auto"),
}


def test_it_trains_what_fit_trains(tmp_path):
    """Parity: ``model.fit`` by hand, with the same seed and order of rows."""
    data = small_dataset()
    conf = make_conf(shuffle=False, model=ALL_MODELS["batch statistics"])
    channel = fit(tmp_path, conf, data, seed=5)
    keras.utils.set_random_seed(5)
    model = normalized((4, 4, 1), 3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])

    def ready(name):
        columns = data.splits[name].columns
        return np.moveaxis((columns["x"] - np.float32(0.1)) / np.float32(2), 1, -1), columns["y"]

    model.fit(*ready("train"), batch_size=32, epochs=3, shuffle=False, verbose=0)
    test_loss, accuracy = model.evaluate(*ready("test"), verbose=0)
    assert channel.metrics["test/accuracy"] == pytest.approx(accuracy)
    assert channel.metrics["test/loss"] == pytest.approx(test_loss, rel=1e-5)


@pytest.mark.parametrize("name", ["dropout", "batch statistics"])
def test_resuming_inside_an_epoch_changes_nothing(tmp_path, name):
    conf = make_conf(model=ALL_MODELS[name])
    whole = fit(tmp_path / "a", conf)
    stopped = fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=7))
    assert stopped.checkpoints[-1]["step"] == 7
    resumed = fit(tmp_path / "b", conf)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), rtol=0, atol=0)
    for metric in ("train/epoch_loss", "test/loss", "test/accuracy"):
        assert resumed.metrics[metric] == pytest.approx(whole.metrics[metric], rel=1e-12)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_a_checkpoint_predicts_what_was_evaluated(tmp_path, name):
    conf, data = make_conf(model=ALL_MODELS[name], max_epochs=4), small_dataset(dtype="uint8", shape=(2, 3, 4))
    channel = fit(tmp_path, conf, data)
    test = data.splits["test"].columns
    found = load_predictor(newest(tmp_path, conf, data)).predict(test["x"])
    assert found.shape == (37, 3)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    assert (found.argmax(1) == test["y"]).mean() == pytest.approx(channel.metrics["test/accuracy"])
    if name in ("dropout", "cnn", "subclass"):
        loss = -np.log(found[np.arange(37), test["y"]]).mean()
        assert loss == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("activation", [None, "sigmoid"])
def test_two_classes_can_share_one_output(tmp_path, chosen, activation):
    data = small_dataset()
    for split in data.splits.values():
        split.columns["y"] %= 2
    data = Dataset(replace(data.info, num_classes=2), data.splits)
    loss = {"_target_": "keras.losses.BinaryCrossentropy", "from_logits": activation is None} if chosen else None
    model = local("normalized", input_shape="auto", num_classes=1, activation=activation)
    conf = make_conf(model=model, loss=loss, max_epochs=10)
    channel = fit(tmp_path, conf, data)
    test = data.splits["test"].columns
    found = load_predictor(newest(tmp_path, conf, data)).predict(test["x"])
    assert found.shape == (37, 2)
    assert (found.argmax(1) == test["y"]).mean() == channel.metrics["test/accuracy"] > 0.6


def test_callbacks_are_told_and_may_end_training(tmp_path):
    conf = make_conf(max_epochs=9, callbacks=[local("StopsAfter", epoch=2)])
    channel = fit(tmp_path, conf)
    assert channel.checkpoints[-1]["epoch"] == 2
    logs = ["learning_rate", "loss", "val_accuracy", "val_loss"]
    assert StopsAfter.told == ["begin 0", logs, "begin 1", logs]
    assert fit(tmp_path, conf).events == [], "a run that a callback ended is not resumed"


def test_a_schedule_and_a_callback_set_the_rate(tmp_path):
    schedule = {
        "_target_": "keras.optimizers.schedules.PolynomialDecay",
        "initial_learning_rate": 0.1,
        "end_learning_rate": 0.0,
        "decay_steps": "auto",
    }
    found = fit(tmp_path / "a", make_conf(optimizer={**ADAM, "learning_rate": schedule}))
    assert found.metrics["train/lr"] == pytest.approx(0, abs=1e-7)
    plateau = {"_target_": "keras.callbacks.ReduceLROnPlateau", "patience": 1, "min_delta": 100.0, "factor": 0.5}
    found = fit(tmp_path / "b", make_conf(callbacks=[plateau]))
    assert found.metrics["train/lr"] == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        ({**MLP, "num_classes": 2}, TrainingError, r"returns \(2,\) numbers per row, but small has 3 classes"),
        (local("TrainsItself", num_classes=3), ConfigError, "has a custom train_step"),
        ({"_target_": "keras.layers.Dense", "units": 3}, ConfigError, "not a Keras 3 model"),
    ],
)
def test_a_model_that_can_not_be_trained_is_told(tmp_path, model, error, says):
    with pytest.raises(error, match=says):
        fit(tmp_path, make_conf(model=model))


class TestEpochs(EpochsOnOneRank):
    runs, trainer = keras_runs, "tensorflow"
    bigrams = local("bigrams", input_shape="auto", vocab_size="auto")


NOISY = {
    "_target_": "keras.Sequential",
    "layers": [
        {"_target_": "keras.layers.Flatten"},
        {"_target_": "keras.layers.Dense", "units": 16},
        {"_target_": "keras.layers.BatchNormalization"},
        {"_target_": "keras.layers.Dropout", "rate": 0.5},
        {"_target_": "keras.layers.GaussianNoise", "stddev": 0.1},
        {"_target_": "keras.layers.Dense", "units": 3},
    ],
}
AVERAGING = {
    **ADAM,
    "use_ema": True,
    "ema_momentum": 0.9,
    "ema_overwrite_frequency": 3,
    "clipnorm": 0.1,
    "gradient_accumulation_steps": 2,
}
PLATEAU = {"_target_": "keras.callbacks.ReduceLROnPlateau", "monitor": "val_loss", "patience": 1, "min_delta": 100.0}
EARLY = {"_target_": "keras.callbacks.EarlyStopping", "monitor": "val_loss", "patience": 4, "min_delta": 100.0}


def test_an_interrupted_run_ends_with_the_same_numbers_callbacks_included(tmp_path):
    conf = make_conf(model=NOISY, optimizer=AVERAGING, callbacks=[PLATEAU, EARLY], max_epochs=9)
    _, last = assert_exact(tmp_path, lambda folder, channel: fit(folder, conf, channel=channel), [2, 9])
    assert last.checkpoints[-1]["epoch"] == 5, "the early stop counts the evaluations before the interruptions"


@pytest.mark.parametrize(
    ("monitor", "mode"),
    [("val_accuracy", "max"), ("val_loss", "min"), ("val_top", "max"), ("val_far", "min"), ("val_riddle", "auto")],
)
@pytest.mark.parametrize("kind", ["EarlyStopping", "ReduceLROnPlateau"])
def test_callbacks_know_which_way_a_metric_gets_better(monitor, mode, kind):
    callback = {"_target_": f"keras.callbacks.{kind}", "monitor": monitor}
    metrics = {"top": keras.metrics.SparseTopKCategoricalAccuracy(2), "far": keras.metrics.MeanAbsoluteError()}
    (found,) = build_callbacks(make_conf(callbacks=[callback]), metrics, Builder())
    assert found.mode == mode


def test_accuracy_may_end_training_as_in_fit(tmp_path):
    callback = {"_target_": "keras.callbacks.EarlyStopping", "monitor": "val_accuracy", "min_delta": 1}
    channel = fit(tmp_path, make_conf(callbacks=[callback], max_epochs=9), small_dataset(shape=(4,)))
    assert channel.checkpoints[-1]["epoch"] == 2


@pytest.mark.parametrize("masked", [True, False])
def test_outputs_with_a_mask_are_for_one_worker(tmp_path, masked):
    model = local("bigrams", input_shape="auto", vocab_size="auto", mask_zero=masked)
    conf = make_conf(model=model, max_steps=1)
    assert fit(tmp_path, conf, small_text()).checkpoints
    two = make_worker(tmp_path, conf, small_text(), world_size=2)
    if not masked:
        KerasLearner(two, TensorflowRanks(0, 2))
        return
    with pytest.raises(TrainingError, match="outputs with a mask"):
        KerasLearner(two, TensorflowRanks(0, 2))


@pytest.mark.parametrize("every", [5, 4])
def test_averages_end_as_those_of_fit_if_their_frequency_divides_the_steps(tmp_path, every):
    data, keys = small_dataset(shape=(4,)), {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": every}
    channel = fit(tmp_path, make_conf(optimizer={**SGD, **keys}, shuffle=False), data)
    keras.utils.set_random_seed(0)
    model = mlp((4,), 3, hidden=[16])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, **keys), loss)
    x, y = data.splits["train"].columns["x"], data.splits["train"].columns["y"]
    model.fit((x - np.float32(0.1)) / np.float32(2), y, batch_size=32, epochs=3, shuffle=False, verbose=0)
    found = [one for name, one in sorted(weights(tmp_path).items()) if "dense" in name]
    same = [
        np.allclose(one, other, rtol=1e-5, atol=1e-6) for one, other in zip(found, model.get_weights(), strict=True)
    ]
    assert all(same) == (every == 5)
    notes = channel.notices
    assert notes == [] if every == 5 else "choose a divisor of 15" in notes[0]


def test_a_new_run_takes_only_the_weights_of_an_older_checkpoint_that_holds_the_optimizer_with_them(tmp_path):
    older, new = (
        KerasLearner(make_worker(tmp_path, make_conf(), small_dataset()), TensorflowRanks(0, 1)) for _ in range(2)
    )
    older.model.set_weights([one + 1 for one in older.model.get_weights()])
    older.model.optimizer.iterations.assign(7)
    older.model.save_weights(tmp_path / WEIGHTS)
    new.load_weights(tmp_path)
    for one, other in zip(older.model.get_weights(), new.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert int(new.model.optimizer.iterations) == 0


def test_a_step_that_is_left_out_leaves_batch_statistics_and_averages_alone(tmp_path):
    conf = make_conf(model=NOISY, optimizer=AVERAGING, global_batch_size=50)
    fit(tmp_path, conf, with_infinite_row(small_dataset()), failure=FailureConf(nan_loss="skip"))
    assert all(np.isfinite(values).all() for values in weights(tmp_path).values())


@pytest.mark.parametrize(("asked", "found"), [(5, 5), (None, 3)])
def test_a_worker_has_as_many_threads_as_the_key_says(tmp_path, monkeypatch, asked, found):
    told = []

    def begun(worker):
        raise InterruptedError

    monkeypatch.setattr("tensorflow.config.threading.set_intra_op_parallelism_threads", told.append)
    monkeypatch.setattr("rtrain.trainers.tensorflow.loop.process_group", begun)
    worker = make_worker(tmp_path, make_conf(num_threads=asked), small_dataset())
    with pytest.raises(InterruptedError):
        train(replace(worker, in_process=False, num_threads=3))
    assert told == [found]


def test_batch_statistics_follow_the_parts_of_a_step_and_resume(tmp_path):
    model = local("normalized", input_shape="auto", num_classes=3)
    conf = make_conf(model=model, global_batch_size=8, accumulate_steps=3)
    data = small_dataset(num_rows=(25, 3))  # the last step has one row
    fit(tmp_path / "whole", conf, data)
    fit(tmp_path / "parts", conf, data, channel=RecordingChannel(stop_after=3))
    fit(tmp_path / "parts", conf, data)
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert_same(whole, parts, rtol=1e-6, atol=1e-7)
    assert all(np.isfinite(values).all() for values in whole.values())
