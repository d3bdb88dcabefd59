"""What users of boosted trees may write."""

import numpy as np


def to_the_mean(predictions, data):
    """An objective: squared error of a number."""
    return predictions - data.get_label(), np.ones_like(predictions)


def one(predictions, data):
    """A metric for XGBoost."""
    return "one", 1.0


def two(predictions, data):
    """A metric for LightGBM."""
    return "two", 2.0, False
