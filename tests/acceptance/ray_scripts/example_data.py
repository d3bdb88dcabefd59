"""The rows that Ray's examples fetch from S3, made here, with their columns."""

import numpy as np


def regression(start=0, count=300):
    """Return rows with 100 numbers in ``x`` and what to predict in ``y``."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(1000, 100)), rng.normal(size=100)
    y = (x @ weights)[start : start + count]
    return {"x": x[start : start + count].astype("float32"), "y": y.astype("float32")}
