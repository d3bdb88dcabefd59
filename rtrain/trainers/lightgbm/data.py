"""Rows of a dataset as LightGBM's datasets, without a copy of them as a data frame."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from rtrain.datasets.base import Columns, DatasetInfo, Split
from rtrain.trainers.boosting import flat, group_sizes, usable_names


def make_dataset(
    split: Split, info: DatasetInfo, place: tuple[int, int], params: dict[str, Any], ref: lightgbm.Dataset | None = None
) -> lightgbm.Dataset:
    """Return rows of a split, to be binned when LightGBM has joined the workers.

    Args:
        split: Rows in memory are read where they are; streamed ones chunk by chunk.
        info: The dataset.
        place: Rank, and the number of workers that share the rows.
        params: LightGBM's parameters.
        ref: The train split, whose bins are used.
    """
    chunks = list(split.own_rows(*place))
    data: Any = [flat(chunk["x"]) for chunk in chunks]
    names: Any = usable_names(info) or "auto"
    return lightgbm.Dataset(
        data[0] if len(data) == 1 else data,
        label=_column(chunks, "y"),
        weight=_column(chunks, "weight"),
        group=None if "group" not in chunks[0] else group_sizes(_column(chunks, "group")),
        init_score=_column(chunks, "base_margin"),
        feature_name=names,
        categorical_feature=[info.feature_names.index(name) for name in info.categories],
        reference=ref,
        params=params,
        free_raw_data=True,
    )


def _column(chunks: list[Columns], name: str) -> Any:
    parts = [chunk[name] for chunk in chunks if name in chunk]
    if not parts:
        return None
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole.reshape(len(whole), -1, order="A") if whole.ndim > 1 else whole
