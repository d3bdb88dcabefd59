"""Rows that are read some at a time, in batches of another size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from rtrain.datasets.base import Columns, concatenated, take

Rows = TypeVar("Rows", "Columns", "pa.Table")


def in_batches(pieces: Iterable[Rows], batch_size: int | None, drop_last: bool) -> Iterator[Rows]:
    """Yield all rows in their order.

    Args:
        pieces: The rows, as they are read.
        batch_size: Rows of each batch; None for those of a piece.
        drop_last: Leave the last batch out if it has fewer rows.
    """
    rest: list[Rows] = []
    for piece in filter(num_rows_of, pieces):
        rest.append(piece)
        count = sum(map(num_rows_of, rest))
        size = batch_size or count
        if count < size:
            continue
        rows, whole = _as_one(rest), count // size * size
        for begin in range(0, whole, size):
            yield _part(rows, begin, begin + size)
        rest = [_part(rows, whole, count)] if whole < count else []
    if rest and not drop_last:
        yield _as_one(rest)


def num_rows_of(rows: Columns | pa.Table) -> int:
    """Return the number of rows."""
    return len(next(iter(rows.values()))) if isinstance(rows, Mapping) else int(rows.num_rows)


def _as_one(pieces: Sequence[Any]) -> Any:
    if isinstance(pieces[0], Mapping):
        return concatenated(pieces)
    return pa.concat_tables(pieces, promote_options="permissive")


def _part(rows: Any, begin: int, end: int) -> Any:
    return take(rows, slice(begin, end)) if isinstance(rows, Mapping) else rows.slice(begin, end - begin)
