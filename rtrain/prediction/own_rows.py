"""Rows that a model's own config brings, in place of a dataset: the trainer's library reads and predicts them."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import pyarrow as pa

from rtrain.prediction.opening import Opened
from rtrain.prediction.output import plain_table


def predicted_tables(opened: Opened, split: str | None) -> Generator[tuple[int, pa.Table]]:
    """Yield numbers of rows and tables of what the model predicts of its rows, in the order of the data."""
    with opened.scrub.cleaning():
        for columns in opened.model.load_own_rows().predict(split):
            table = plain_table(columns)
            yield table.num_rows, table


def measured(opened: Opened, split: str | None) -> tuple[str, int, Mapping[str, float]]:
    """Return which split of its rows the model was measured on, how many there are, and its own metrics."""
    with opened.scrub.cleaning():
        return opened.model.load_own_rows().evaluate(split)
