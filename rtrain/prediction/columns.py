"""Rows as named columns: the input of a custom loop's predictor."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo, RawChunk


def columns_of(info: DatasetInfo, chunk: RawChunk, *, with_labels: bool = False) -> dict[str, Any]:
    """Return some rows as the shards of the loop have them; of a table, each feature by its name as well.

    Args:
        info: The dataset of training.
        chunk: Rows.
        with_labels: Add ``y``.
    """
    if chunk.raw is not None:
        return {name: np.asarray(values) for name, values in chunk.raw.items()}
    features = info.feature_names if chunk.x.shape[1:] == (len(info.feature_names),) else ()
    named: dict[str, np.ndarray] = {name: chunk.x[:, place] for place, name in enumerate(features)}
    more = {"group": chunk.group, "base_margin": chunk.base_margin, "weight": chunk.weight}
    if with_labels:
        more["y"] = chunk.y
    return {**named, "x": chunk.x, **{name: values for name, values in more.items() if values is not None}}
