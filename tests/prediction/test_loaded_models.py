"""``load_checkpoint(run).model``: the trained model as its framework has it, of every trainer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import rtrain
from rtrain.errors import PredictionError
from rtrain.prediction.given_rows import as_rows
from rtrain.prediction.loading import Checkpoint
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.trainers.registry import confs

SMALL = ("num_workers=0", "dataset.limit=120")
CONFIGS = {
    "torch": ("mlp", "epochs=1", "trainer.ema_decay=0.5"),
    "jax": ("jax", "epochs=1", "trainer.model.channels=[4]"),
    "tensorflow": ("keras", "epochs=1", "trainer.model.channels=[4]"),
    "transformers": ("transformers", "epochs=1", "trainer.model.config.hidden_size=16"),
    "lightning": ("lightning", "epochs=1"),
    "sklearn": ("sklearn", "trainer.estimator.n_estimators=5"),
    "xgboost": ("xgboost", "trainer.num_boost_round=40", "trainer.params.eta=1", "trainer.early_stopping.patience=3"),
    "lightgbm": (
        "lightgbm",
        "trainer.num_boost_round=60",
        "trainer.params.learning_rate=1",
        "trainer.early_stopping.patience=3",
    ),
}


def softmax(values):
    found = np.exp(values - values.max(1, keepdims=True))
    return found / found.sum(1, keepdims=True)


def standardized(x, info):
    shape = (1, -1, *[1] * (x.ndim - 2))
    return ((x - np.reshape(info.mean, shape)) / np.reshape(info.std, shape)).astype("float32")


def of_torch(model, x, info):
    import torch

    assert not model.training
    with torch.no_grad():
        output = model(torch.from_numpy(standardized(x, info)))
    return softmax(np.asarray(getattr(output, "logits", output)))


def channels_last(x, info):
    return np.moveaxis(standardized(x, info), 1, -1)


def of_xgboost(model, x, info):
    import xgboost

    names = model.feature_names
    return model.predict(xgboost.DMatrix(x.reshape(len(x), -1), feature_names=names))


ANSWERS = {
    "torch": of_torch,
    "lightning": of_torch,
    "transformers": of_torch,
    "jax": lambda model, x, info: softmax(np.asarray(model(channels_last(x, info)))),
    "tensorflow": lambda model, x, info: softmax(np.asarray(model(channels_last(x, info)))),
    "sklearn": lambda model, x, info: model.predict_proba(standardized(x, info).reshape(len(x), -1)),
    "xgboost": of_xgboost,
    "lightgbm": lambda model, x, info: model.predict(x.reshape(len(x), -1)),
}
"""Trainer -> the probabilities that its model gives by what its framework documents."""


def test_all_trainers_are_looked_at():
    assert CONFIGS.keys() == ANSWERS.keys() == confs().keys()


@pytest.mark.parametrize("trainer", CONFIGS)
def test_the_model_gives_what_the_checkpoint_predicts(trainer, tmp_path):
    config, *words = CONFIGS[trainer]
    run = rtrain.fit(config, [*SMALL, *words, f"run.root_dir={tmp_path}"])
    checkpoint = rtrain.load_checkpoint(run)
    x = np.random.default_rng(0).uniform(0, 1, (7, *checkpoint.info.input_shape)).astype(checkpoint.info.dtype)
    found = ANSWERS[trainer](checkpoint.model, x, checkpoint.info)
    np.testing.assert_allclose(found, checkpoint.predict(x), rtol=1e-3, atol=1e-5)
    whole = (x * 10).astype("int64")
    expected = checkpoint.predict(whole.astype(checkpoint.info.dtype))
    for same in (whole, whole.astype("float64"), whole.astype("uint8"), whole.tolist(), tuple(whole.tolist())):
        np.testing.assert_array_equal(checkpoint.predict(same), expected)


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
def test_boosters_know_their_best_round(trainer, tmp_path):
    config, *words = CONFIGS[trainer]
    run = rtrain.fit(config, [*SMALL, *words, f"run.root_dir={tmp_path}"])
    model, best = rtrain.load_checkpoint(run).model, run.manifest.best["step"]
    assert best < run.manifest.step, "it did not stop early"
    assert (model.num_boosted_rounds() if trainer == "xgboost" else model.best_iteration) == best


def test_code_without_a_model_says_what_there_is(tmp_path):
    class Mine:
        def predict(self, x):
            return x

    checkpoint = Checkpoint(tmp_path, None, Mine())
    with pytest.raises(PredictionError, match="Mine predicts with this checkpoint and has no attribute 'model'"):
        _ = checkpoint.model


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """Runs of several trainers on a table of numbers in units of their own, and the table."""
    folder = tmp_path_factory.mktemp("houses")
    rng = np.random.default_rng(0)
    rows = [(size, rng.integers(1, 6), 1e4 * size, int(size > 90)) for size in rng.integers(40, 150, 90)]
    lines = [",".join(map(str, row)) for row in rows]
    (folder / "houses.csv").write_text("\n".join(["area,rooms,price,dear", *lines]) + "\n")
    words = ["dataset=csv", f"dataset.path={folder}/houses.csv", "dataset.label=dear", "dataset.task=classification"]
    more = {
        "torch": ("mlp", "epochs=3"),
        "jax": ("jax", "epochs=3", "trainer.model={_target_:rtrain.models.jax.MLP,num_classes:auto}"),
        "sklearn": CONFIGS["sklearn"],
        "xgboost": ("xgboost", "trainer.num_boost_round=4"),
    }
    return {
        name: rtrain.load_checkpoint(
            rtrain.fit(config, ["num_workers=0", *words, *own, f"run.root_dir={folder}/{name}"]).path
        )
        for name, (config, *own) in more.items()
    }, folder / "houses.csv"


def of_house(checkpoint, area=60.0, rooms=2.0, price=6e5):
    values = {"area": area, "rooms": rooms, "price": price}
    return [values[name] for name in checkpoint.info.feature_names]


def test_rows_have_the_units_of_the_data(houses):
    checkpoints, table = houses
    for checkpoint in checkpoints.values():
        expected = rtrain.predict(checkpoint.path, overrides=[f"dataset.path={table}"]).to_pandas()
        x = pd.read_csv(table)[list(checkpoint.info.feature_names)].to_numpy()
        np.testing.assert_allclose(checkpoint.predict(x)[:, 1], expected["probability_1"], rtol=1e-5)


def test_what_is_no_array_of_rows_is_told_before_a_library_fails(houses):
    for checkpoint in houses[0].values():
        row = of_house(checkpoint)
        frame = pd.DataFrame([row], columns=checkpoint.info.feature_names)
        ways = {
            "not a table": frame,
            "not a dict of columns": {"area": [1.0]},
            r"x has the shape \(3,\): this model takes rows, \(rows, 3\)": row,
            r"x has the shape \(\)": 3.0,
            "x contains texts: this model takes numbers": [[*row[:2], "a"]],
            "x contains texts": np.array([[*row[:2], "a"]], object),
            "x contains more than numbers": [[*row[:2], {}]],
            "the rows of x differ in length": [row, row[:2]],
            r"rows have the shape \(2,\), but the model was trained on \(3,\)": [row[:2]],
            r"rows have the shape \(4,\)": [[*row, 1.0]],
            r"rows have the shape \(3, 1\)": np.array([row])[:, :, None],
            "checkpoint.info.feature_names": [row[:2]],
        }
        for said, x in ways.items():
            with pytest.raises(PredictionError, match=said):
                checkpoint.predict(x)
        np.testing.assert_array_equal(checkpoint.predict(np.array([row], object)), checkpoint.predict([row]))


def test_missing_values_are_refused_by_models_that_make_nan_of_them(houses):
    for name, checkpoint in houses[0].items():
        x = [of_house(checkpoint), of_house(checkpoint, rooms=np.nan)]
        if checkpoint.takes_missing:
            assert np.isfinite(checkpoint.predict(x)).all()
            continue
        assert name in ("torch", "jax")
        with pytest.raises(PredictionError, match=r"^x\[1\] has no value \(NaN\) at 'rooms'"):
            checkpoint.predict(x)
        with pytest.raises(PredictionError, match="'rooms'"):
            checkpoint.predict([[*x[0]], [None if value != value else value for value in x[1]]])


def test_one_text_is_no_list_of_texts():
    info = replace(UNKNOWN, dtype="object")
    with pytest.raises(PredictionError, match="x is one text"):
        as_rows("good", info, takes_missing=False)
    assert as_rows(["good", "bad"], info, takes_missing=False).tolist() == ["good", "bad"]


def test_an_unknown_category_is_no_missing_value():
    info = replace(
        UNKNOWN, dtype="float32", input_shape=(2,), feature_names=("area", "town"), categories={"town": ("a",)}
    )
    np.testing.assert_array_equal(as_rows([[1, np.nan]], info, takes_missing=False), [[1, np.nan]])
    with pytest.raises(PredictionError, match="'area'"):
        as_rows([[np.nan, np.nan]], info, takes_missing=False)


def test_images_may_be_rows_of_numbers():
    info = replace(UNKNOWN, dtype="float32", input_shape=(1, 2, 2))
    assert as_rows([[1, 2, 3, 4]], info, takes_missing=False).shape == (1, 4)
    with pytest.raises(PredictionError, match=r"x has the shape \(1, 3\)"):
        as_rows([[1, 2, 3]], info, takes_missing=False)
