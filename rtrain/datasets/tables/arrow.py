"""From Arrow tables in memory to a dataset."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rtrain.datasets.base import Dataset
from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.memory import always_resident
from rtrain.datasets.splitting.left_out import read_for
from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.in_memory import resident_table
from rtrain.datasets.tables.predict_rows import arrow_places
from rtrain.datasets.tables.spec import check_has, choose_features, row_bytes, used_columns
from rtrain.errors import DatasetError


def load_arrow(
    name: str, parts: Mapping[str, pa.Table], conf: ColumnsConf, where: str, reason: str | None = None
) -> Dataset:
    """Return the dataset of the tables in ``parts``, by split.

    Args:
        name: Of the source.
        parts: The rows of each split; ``train`` is among them.
        conf: Which columns are taken, and how.
        where: Where the rows come from, for messages.
        reason: Why they are in memory; None: there is no other way.

    Raises:
        DatasetError: A column is missing or unusable; names it and the row.
    """
    places = arrow_places(parts, where)
    for split, table in parts.items():
        if not table.num_rows:
            raise DatasetError(f"{places[split]}: there are no rows.")
    adjust = Adjustment(conf.na_values, conf.dtypes)
    parts = {split: adjust(table, places[split]) for split, table in parts.items()}
    features = choose_features(conf, parts["train"].schema, places["train"])
    for split, table in parts.items():
        with read_for(split):
            check_has(used_columns(conf, features), table.schema, places[split], f"{places['train']} has")
    if reason is None:
        num_rows = sum(table.num_rows for table in parts.values())
        reason = always_resident(num_rows * row_bytes(conf.dtype, len(features)))
    tables = {split: [(places[split], table)] for split, table in parts.items()}
    return resident_table(name, tables, features, conf, reason)
