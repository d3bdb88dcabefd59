"""Rows for the predictor of a loop that had no dataset, or several: the columns of a table as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.base import DatasetInfo, RawChunk, RowReader, Source
from rtrain.datasets.registry import confs
from rtrain.errors import ConfigError, DatasetError

UNKNOWN = DatasetInfo(
    name="the data",
    task="",
    input_shape=(),
    num_classes=None,
    num_rows={},
    fingerprint="",
    memory="stream",
    memory_reason="",
)
"""Stands for the dataset of training: rtrain knows none, or several, whose rows differ."""
AS_THEY_ARE: Mapping[str, Any] = {
    "classes": None,
    "features": [],
    "on_missing": "keep",
    "fill": [],
    "dtype": "float32",
    "categories": {},
    "texts": [],
    "roles": {"weight": None, "group": None, "base_margin": []},
}
"""``Dataset.encoding`` of a table without features, of which a reader keeps every column."""


def check_source(words: Sequence[str], place: object, trained: str) -> None:
    """Refuse a prediction that doesn't say what reads the rows: no training has.

    Args:
        words: The user's.
        place: The checkpoint.
        trained: How it was trained, for the message.

    Raises:
        ConfigError: Says how.
    """
    if not any(f"dataset={name}" in words for name in confs()):
        raise ConfigError(
            f"{place} was trained {trained}.",
            "Set a dataset: dataset=csv dataset.path=new.csv",
        )


def without_label(conf: type) -> dict[str, Any]:
    """Return keys for a source that wants to know a label: there is none to predict."""
    return {"label": ""} if "label" in {one.name for one in fields(conf)} else {}


@dataclass(frozen=True)
class RawRows:
    """Reads tables piece by piece; ``ids`` are kept for the output, or every column."""

    inner: RowReader
    ids: tuple[str, ...]
    label: str = ""
    """The column that predictions are compared with; empty: none was named."""

    @property
    def pieces(self) -> Sequence[Any]:
        """The pieces of the table."""
        return self.inner.pieces

    def read(self, piece: Any, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a piece; a label, if there is one, is a column like the others.

        Raises:
            DatasetError: The label is not a column, or is empty in some rows.
        """
        for chunk in self.inner.read(piece):
            kept = {name: chunk.kept[name] for name in self.ids or chunk.kept}
            y = _labels(chunk.kept, self.label) if with_labels and self.label else None
            yield replace(chunk, kept=kept, raw=chunk.kept, y=y)


def _labels(columns: Mapping[str, Any], name: str) -> np.ndarray:
    if name not in columns:
        raise DatasetError(f"dataset.label: '{name}' is not a column.", nearest_or_all(name, columns))
    found = np.asarray(columns[name])
    is_empty = np.isnan(found) if found.dtype.kind == "f" else np.array([one is None for one in found.tolist()])
    if is_empty.any():
        raise DatasetError(f"dataset.label: '{name}' is empty in {int(is_empty.sum()):,} rows.", "Remove these rows.")
    return found


def open_raw_rows(source: Source, conf: Any) -> RawRows | None:
    """Return a reader of all columns that ``conf`` names; None if its source has no rows without splits.

    Raises:
        DatasetError: The data is missing, or has no such columns.
    """
    ids, label = tuple(getattr(conf, "ids", ())), getattr(conf, "label", "")
    inner = source.open_rows(conf, AS_THEY_ARE)  # which finds ids without a column
    if inner is None or not ids:
        return None if inner is None else RawRows(inner, (), label)
    every = source.open_rows(replace(conf, ids=[]), AS_THEY_ARE)
    return None if every is None else RawRows(every, ids, label)
