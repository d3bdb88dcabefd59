"""``load_checkpoint(run).model``: the trained model as its framework has it, of every trainer."""

from __future__ import annotations

import numpy as np
import pytest

import rtrain
from rtrain.errors import PredictionError
from rtrain.prediction.loading import Checkpoint
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
