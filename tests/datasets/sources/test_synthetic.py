from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression


@pytest.mark.parametrize("shape", [[16], [3, 8, 8]])
@pytest.mark.parametrize(("task", "model"), [("classification", LogisticRegression), ("regression", LinearRegression)])
def test_rows_can_be_learned(load, task, model, shape):
    dataset = load("synthetic", task=task, shape=shape)
    train, test = (dataset.splits[name].columns for name in ("train", "test"))
    fitted = model().fit(train["x"].reshape(len(train["y"]), -1), train["y"])
    assert fitted.score(test["x"].reshape(len(test["y"]), -1), test["y"]) > 0.85
    assert dataset.info.input_shape == tuple(shape)
    assert train["y"].dtype == (np.int64 if task == "classification" else np.float32)


def test_the_seed_decides_everything(load):
    first, again, other = (load("synthetic", seed=seed).info.fingerprint for seed in (0, 0, 1))
    assert first == again != other
