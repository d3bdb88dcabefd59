"""What sums of boosted trees mean in a classification: probabilities, and the losses that rtrain measures itself."""

from __future__ import annotations

import numpy as np


def probabilities_of_margins(margins: np.ndarray) -> np.ndarray:
    """Return probabilities, (rows, classes), of sums of trees: (rows,) for the second of two, or one per class."""
    if margins.ndim == 1:
        second = 1 / (1 + np.exp(-margins))
        return np.stack([1 - second, second], axis=1)
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return shares


def sums_of_margins(margins: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return (3,) sums over rows, by weight: of wrong ones, of the logarithmic loss, and of the weights.

    Args:
        margins: As ``probabilities_of_margins`` takes them.
        y: (rows,) numbers of classes.
        weight: (rows,), or None.
    """
    margins = margins.astype(np.float64)
    both = np.stack([np.zeros_like(margins), margins], axis=1) if margins.ndim == 1 else margins
    rest = both - both.max(axis=1, keepdims=True)
    loss = np.log(np.exp(rest).sum(axis=1)) - np.take_along_axis(rest, y.astype(int)[:, None], axis=1)[:, 0]
    counts = np.ones(len(y)) if weight is None else weight.astype(np.float64)
    return np.array([counts @ (both.argmax(axis=1) != y), counts @ loss, counts.sum()])
