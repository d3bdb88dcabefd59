"""Rows of arrays to predict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtrain.datasets.arrays.load import Arrays, check_beside, check_pixels, inputs, targets
from rtrain.datasets.base import RawChunk
from rtrain.datasets.labels import Labels
from rtrain.datasets.without_effect import check_kind
from rtrain.errors import DatasetError

CHUNK_ROWS = 4_096


def open_array_rows(parts: Sequence[Arrays], encoding: Mapping[str, Any]) -> ArrayRows:
    """Open arrays to predict their rows.

    Raises:
        DatasetError: The model was trained on other rows than arrays.
    """
    check_kind("input_shape" in encoding, "arrays of numbers")
    return ArrayRows(tuple(parts), encoding)


@dataclass(frozen=True)
class ArrayRows:
    """Rows of arrays in memory; a piece is one of them."""

    pieces: tuple[Arrays, ...]
    encoding: Mapping[str, Any]

    def read(self, piece: Arrays, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a part, some at a time."""
        return array_chunks(piece, self.encoding, with_labels)


def array_chunks(
    part: Arrays,
    encoding: Mapping[str, Any],
    with_labels: bool,
    kept: Mapping[str, Any] | None = None,
    first_row: int = 0,
) -> Iterator[RawChunk]:
    """Yield rows as in training, some at a time.

    Args:
        part: The rows; ``y`` may be None.
        encoding: What training remembers of its rows.
        with_labels: Give ``y`` too.
        kept: Further columns for the output, (rows,).
        first_row: Messages number the rows from it on.

    Raises:
        DatasetError: The rows are of another shape or kind than those of training, or a label is of no class.
    """
    labels, dtype = Labels.stored(encoding["label"], encoding), encoding.get("dtype")
    roles = ("group", "base_margin", "weight")
    given = [part.more.get(name) if with_labels or name == "base_margin" else None for name in roles]
    beside = {"y": part.y if with_labels else None, **dict(zip(roles, given, strict=True))}
    check_beside(part, {name: values for name, values in beside.items() if values is not None})
    for start in range(0, len(part.x), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        y = None if part.y is None or not with_labels else part.y[rows]
        some = Arrays(where=part.where, x=part.x[rows], y=y)
        x = inputs(some, None if dtype == "uint8" else dtype)
        if dtype is not None:
            check_pixels(x, dtype, part.where)
        if list(x.shape[1:]) != encoding["input_shape"]:
            mine, learned = (" x ".join(map(str, one)) for one in (x.shape[1:], encoding["input_shape"]))
            raise DatasetError(f"{part.where}: rows are of shape {mine}, but the training rows were of {learned}.")
        more = [None if values is None else values[rows] for values in given]
        names = {name: values[rows] for name, values in (kept or {}).items()}
        place = (part.where, first_row + start)
        yield RawChunk(x, None if y is None else targets(some, labels, place[1]), names, *more, place=place)
