"""The rows that Ray's examples fetch from S3 and from TensorFlow Datasets, made here, with their columns."""

import numpy as np
import pyarrow as pa
from large_digits import large_digits


def regression(start=0, count=300):
    """Return a table with 100 numbers in ``x`` and what to predict in ``y``."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(1000, 100)), rng.normal(size=100)
    y = (x @ weights)[start : start + count]
    return pa.table({"x": list(x[start : start + count].astype("float32")), "y": y.astype("float32")})


def images():
    """Return a table with 784 numbers from 0 to 1 in ``image``, and the same in ``label``."""
    found = list(large_digits()[0][:128].reshape(128, 784).astype("float32") / 255)
    return pa.table({"image": found, "label": found})
