"""One number per row, as (rows,) or (rows, 1): losses, metrics and weights are those of a plain script."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from epochs_contract import assert_same, copied_and_weighted
from keras_runs import METRIC, SGD, fit, make_conf, weights

from rtrain.config.schema import RtrainConf
from rtrain.config.targets import allow_list
from rtrain.datasets.base import Dataset
from rtrain.errors import ConfigError, TrainingError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_job
from rtrain.trainers.tensorflow.checks import SPARSE, check_conf

HERE = __name__


def line(input_shape, column=True):
    """A linear model of one output, as (rows, 1) or as (rows,)."""
    layers = [keras.layers.Input(tuple(input_shape)), keras.layers.Dense(1)]
    return keras.Sequential(layers if column else [*layers, keras.layers.Reshape(())])


class OwnMean(keras.losses.Loss):
    """As Keras's guide writes a loss."""

    def call(self, y_true, y_pred):
        return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)


class OwnEach(keras.losses.Loss):
    """Leaves the mean to Keras."""

    def call(self, y_true, y_pred):
        return keras.ops.abs(y_true - y_pred)


class OwnReshaped(OwnMean):
    """The fix that the error names."""

    def call(self, y_true, y_pred):
        y_pred = keras.ops.reshape(y_pred, keras.ops.shape(y_true))
        return keras.ops.square(y_true - y_pred)


class OwnSqueezed(keras.losses.Loss):
    """Takes the one column."""

    def call(self, y_true, y_pred):
        return keras.ops.square(y_true - y_pred[:, 0])


class OwnScalar(keras.losses.Loss):
    """One number for all rows together."""

    def call(self, y_true, y_pred):
        return keras.ops.mean(keras.ops.square(y_true - keras.ops.reshape(y_pred, keras.ops.shape(y_true))))


class Coupled(keras.losses.Loss):
    """The error of differences between rows."""

    def call(self, y_true, y_pred):
        error = y_true - y_pred[:, 0]
        return keras.ops.square(error - keras.ops.mean(error))


class OwnMetric(keras.metrics.Mean):
    """An error of the user's own, that broadcasts."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(keras.ops.square(y_true - y_pred))


class OwnMetricSqueezed(OwnMetric):
    """The same, right."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true, y_pred[:, 0])


def own(name, **keys):
    return {"_target_": f"{HERE}.{name}", **keys}


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def make_data(task, *, weighted=True):
    data = small_dataset("regression", shape=(4,), num_rows=(60, 11))
    if task == "classes":
        for split in data.splits.values():
            split.columns["y"] = (split.columns["y"] > 0).astype("int64")
        data = Dataset(replace(data.info, task="classification", num_classes=2), data.splits)
    return copied_and_weighted(data)["weighted"] if weighted else data


def by_hand(data, loss, metrics):
    """Return weights and metrics of ``model.fit`` on columns, with weights of a mean of 1."""
    ready = {}
    for name, split in data.splits.items():
        x, y, weight = (split.columns[key] for key in ("x", "y", "weight"))
        ready[name] = (x - np.float32(0.1)) / np.float32(2), y[:, None], weight / weight.mean()
    keras.utils.set_random_seed(0)
    model = line((4,))
    model.compile(keras.optimizers.SGD(0.1), loss, weighted_metrics=metrics)
    x, y, weight = ready["train"]
    model.fit(x, y, sample_weight=weight, batch_size=60, epochs=3, shuffle=False, verbose=0)
    x, y, weight = ready["test"]
    return model.get_weights(), model.evaluate(x, y, sample_weight=weight, verbose=0, return_dict=True)


LOGITS = {"_target_": "keras.losses.BinaryCrossentropy", "from_logits": True}
LOSSES = {
    "squares": ("regression", None, keras.losses.MeanSquaredError()),
    "huber": ("regression", {"_target_": "keras.losses.Huber", "delta": 0.5}, keras.losses.Huber(delta=0.5)),
    "binary": ("classes", None, keras.losses.BinaryCrossentropy(from_logits=True)),
    "focal": (
        "classes",
        {"_target_": "keras.losses.BinaryFocalCrossentropy", "from_logits": True},
        keras.losses.BinaryFocalCrossentropy(from_logits=True),
    ),
}
METRICS = {
    "regression": {"divergence": "KLDivergence", "cosh": "LogCoshError"},
    "classes": {"hinge": "Hinge", "crossentropy": "BinaryCrossentropy", "auc": "AUC"},
}


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_metrics_are_weighed_whatever_the_shape_of_outputs(tmp_path, name, column):
    task, node, loss = LOSSES[name]
    metrics = {key: {"_target_": f"keras.metrics.{kind}"} for key, kind in METRICS[task].items()}
    data, model = make_data(task), own("line", input_shape="auto", column=column)
    conf = make_conf(model=model, loss=node, metrics=metrics, optimizer=SGD, global_batch_size=60, shuffle=False)
    found = fit(tmp_path, conf, data).metrics
    wanted, measured = by_hand(
        data, loss, [getattr(keras.metrics, kind)(name=key) for key, kind in METRICS[task].items()]
    )
    trained = [one for key, one in sorted(weights(tmp_path).items()) if "dense" in key]
    for one, other in zip(trained, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert found["test/loss"] == pytest.approx(measured.pop("loss"), rel=1e-5)
    assert {key: found[f"test/{key}"] for key in METRICS[task]} == pytest.approx(measured, rel=1e-5)


@pytest.mark.parametrize(("name", "same"), [("OwnMean", "squares"), ("OwnReshaped", "squares")])
def test_a_loss_of_ones_own_is_weighed_where_outputs_are_one_number(tmp_path, name, same):
    found = {}
    for key, loss in (("own", own(name)), ("same", LOSSES[same][1])):
        model = own("line", input_shape="auto", column=False)
        conf = make_conf(model=model, loss=loss, optimizer=SGD)
        found[key] = fit(tmp_path / key, conf, make_data("regression")).metrics["test/loss"]
    assert_same(weights(tmp_path / "own"), weights(tmp_path / "same"), rtol=1e-5, atol=1e-6)
    assert found["own"] == pytest.approx(found["same"], rel=1e-5)


def refused(tmp_path, task="regression", *, weighted=False, **keys):
    """Return what is said before the first step, or an empty string."""
    usual = {"model": own("line", input_shape="auto"), "max_steps": 1}
    try:
        fit(tmp_path, make_conf(**{**usual, **keys}), make_data(task, weighted=weighted))
    except TrainingError as error:
        return f"{error.message} {error.hint}"
    return ""


@pytest.mark.parametrize("name", ["OwnMean", "OwnEach", "OwnReshaped", "OwnSqueezed", "Coupled"])
def test_a_loss_that_broadcasts_is_refused_with_both_shapes(tmp_path, name):
    said = refused(tmp_path, loss=own(name))
    assert ("(rows,) and outputs of shape (rows, 1)" in said) == (name in ("OwnMean", "OwnEach"))
    assert not said or "keras.ops.reshape(y_pred, keras.ops.shape(y_true))" in said


@pytest.mark.parametrize("weighted", [True, False])
def test_a_loss_that_leaves_out_weights_is_refused_where_there_are_some(tmp_path, weighted):
    said = refused(tmp_path, loss=own("OwnScalar"), weighted=weighted)
    assert ("ignores the weights of rows" in said) == weighted


@pytest.mark.parametrize("name", ["OwnMetric", "OwnMetricSqueezed"])
def test_a_metric_that_broadcasts_is_refused(tmp_path, name):
    said = refused(tmp_path, metrics={"own": own(name)})
    assert ("trainer.metrics.own broadcasts" in said) == (name == "OwnMetric")


@pytest.mark.parametrize(
    ("kind", "keys", "hint"),
    [
        ("F1Score", {}, "one_hot(y_true, 3)"),
        ("AUC", {}, "SparseCategoricalAccuracy"),
        ("BinaryAccuracy", {}, "SparseCategoricalAccuracy"),
        ("SparseCategoricalCrossentropy", {"from_logits": True}, ""),
        ("MeanIoU", {"num_classes": "auto", "sparse_y_pred": False}, ""),
    ],
)
def test_a_metric_that_can_not_take_the_classes_is_refused_before_training(tmp_path, kind, keys, hint):
    conf = make_conf(metrics={"own": {"_target_": f"keras.metrics.{kind}", **keys}}, max_steps=1)
    if not hint:
        assert "test/own" in fit(tmp_path, conf).metrics
        return
    with pytest.raises(TrainingError, match=r"trainer\.metrics\.own fails with outputs of shape \(16, 3\)") as caught:
        fit(tmp_path, conf)
    assert hint in caught.value.hint


def test_a_score_of_one_output_needs_its_threshold(tmp_path):
    node = {"_target_": "keras.metrics.F1Score"}
    assert "threshold=0.5" in refused(tmp_path, "classes", metrics={"f1": node})
    assert not refused(tmp_path, "classes", metrics={"f1": {**node, "threshold": 0.5}})


def test_a_metric_that_would_cut_weights_to_whole_numbers_is_refused(tmp_path):
    node = {"_target_": "keras.metrics.BinaryIoU"}
    assert "dtype=float32" in refused(tmp_path, "classes", weighted=True, metrics={"own": node})
    assert not refused(tmp_path, "classes", weighted=True, metrics={"own": {**node, "dtype": "float32"}})


def check(metric, data=None):
    conf = make_conf(metrics={"own": metric})
    check_conf(make_job(RtrainConf(trainer=conf), data or small_dataset(), "tensorflow"))


@pytest.mark.parametrize("kind", SPARSE)
def test_a_metric_of_one_hot_targets_is_refused_with_the_one_that_works(kind):
    given = keras.metrics.__dict__[kind]
    sizes = {"OneHotIoU": {"target_class_ids": [0]}, "IoU": {"target_class_ids": [0]}}.get(kind, {})
    node = {"_target_": f"keras.metrics.{given.__name__}", **sizes}
    node |= {"num_classes": "auto"} if "IoU" in kind else {}
    with pytest.raises(ConfigError, match=rf"trainer\.metrics\.own: {kind} needs") as caught:
        check(node)
    words = caught.value.hint.removeprefix("try: ").replace("++", "").split()
    meant = {key.removeprefix("trainer.metrics.own."): value for key, value in (word.split("=") for word in words)}
    check({**node, **meant, **({"sparse_y_pred": False} if "sparse_y_pred" in meant else {})})
    check({**METRIC, "k": 1})
