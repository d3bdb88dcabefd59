"""Rows that a model's own config brings, in place of a dataset: the trainer's library reads and predicts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from rtrain.prediction.opening import Opened
from rtrain.prediction.output import plain_table


def write_predicted(opened: Opened, split: str | None, write: Callable[[pa.Table], None]) -> int:
    """Write what the model predicts of its rows, in the order of the data, and return their number.

    Args:
        opened: The model.
        split: Which of its rows.
        write: Takes some rows at a time, so that all of them are never held in memory.
    """
    num_rows = 0

    def take(columns: Mapping[str, np.ndarray]) -> None:
        nonlocal num_rows
        table = plain_table(columns)
        write(table)
        num_rows += table.num_rows

    with opened.redact.cleaning():
        opened.model.load_own_rows().predict(split, take)
    return num_rows


def measured(opened: Opened, split: str | None) -> tuple[str, int, Mapping[str, float]]:
    """Return which split of its rows the model was measured on, how many there are, and its own metrics."""
    with opened.redact.cleaning():
        return opened.model.load_own_rows().evaluate(split)
