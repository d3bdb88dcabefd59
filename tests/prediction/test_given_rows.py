"""Rows of another shape than a model takes: the hint leads to the right one."""

import numpy as np
import pytest

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import PredictionError
from rtrain.prediction.given_rows import as_rows


def info(*shape):
    facts = {"task": "classification", "num_classes": 2, "num_rows": {"train": 1}, "fingerprint": ""}
    return DatasetInfo(name="x", input_shape=shape, memory="resident", memory_reason="", **facts)


@pytest.mark.parametrize(
    ("shape", "given", "hint"),
    [
        ((1, 8, 8), (50, 8, 8), "predict(x.reshape(-1, 1, 8, 8))"),
        ((1, 8, 8), (1, 8, 8), "predict([x])"),
        ((3, 8, 8), (50, 8, 8), "Give a list of rows"),
        ((1,), (7,), "predict(x.reshape(-1, 1))"),
        ((3,), (3,), "predict([x])"),
        ((3,), (4,), "Give a list of rows"),
        ((3,), (), "Give a list of rows"),
        ((1, 8, 8), (0,), "Give a list of rows"),
    ],
)
def test_the_hint_on_another_shape_works(shape, given, hint):
    x = np.zeros(given, np.float32)
    with pytest.raises(PredictionError) as caught:
        as_rows(x, info(*shape), takes_missing=False)
    assert hint in caught.value.hint
    if hint.startswith("predict("):
        better = eval(hint.removeprefix("predict"), {"x": x})
        assert as_rows(better, info(*shape), takes_missing=False).shape[1:] == shape
