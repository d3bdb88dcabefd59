"""Splits that are read from their files in each epoch: for data that is larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from rtrain.datasets.base import Batch, Columns, Pass, Split, joined, share_of, take, take_rows
from rtrain.datasets.hashes import random_numbers
from rtrain.datasets.moments import Moments
from rtrain.datasets.splits import KEY, NAMED, SPLITS, TIME, without_keys

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Piece:
    """A part of the files that is read at once: a row group, a text file, some images."""

    key: Any
    """What the reader needs to find it; plain data."""
    first_row: int
    """Rows of all pieces before it."""
    num_rows: int


class Reader(Protocol):
    """Turns a piece into rows; pickled to the processes that read."""

    def read(self, key: Any) -> Iterator[Columns]:
        """Yield all rows of a piece, in order and some at a time, and what decides their split."""


@dataclass(frozen=True)
class Share:
    """Which rows of the pieces belong to a split: those whose number lies in an interval.

    That is the row's ``TIME``; or a random number that depends on ``seed`` and the row's ``KEY``, or else its place.
    """

    seed: int = 0
    low: float = float("-inf")
    high: float = float("inf")
    named: str | None = None
    """The split that a row has to say it belongs to, its ``NAMED``; None: any."""
    num_rows: int = 0
    """Rows of all pieces; only needed with ``limit``."""
    limit: int | None = None
    """Rows that are looked at, spread over all of them."""
    below: float | None = None
    """In place of ``limit``, where rows of equal ``KEY`` stay together: those of a smaller random number."""

    @property
    def is_whole(self) -> bool:
        """Whether all rows belong to the split, but for ``limit``."""
        return (self.low, self.high, self.named, self.below) == (float("-inf"), float("inf"), None, None)

    def of_groups(self, keys: np.ndarray) -> Share:
        """Return the share that looks at as many whole groups as fit into ``limit``, at least one.

        Args:
            keys: (num_rows,) uint64, the ``KEY`` of all rows.
        """
        import numpy as np

        groups, counts = np.unique(keys, return_counts=True)
        numbers = random_numbers((self.seed, 1), groups)
        order = np.argsort(numbers, kind="stable")
        wanted = self.num_rows if self.limit is None else self.limit
        fitting = max(1, int(np.searchsorted(np.cumsum(counts[order]), wanted, side="right")))
        below = numbers[order[fitting]] if fitting < len(groups) else None
        return replace(self, limit=None, below=below)

    def mask(self, first_row: int, count: int, columns: Columns) -> np.ndarray:
        """Return which of the rows from ``first_row`` on belong to the split, by ``columns`` if they decide."""
        import numpy as np

        chosen = np.ones(count, bool)
        if not self.is_whole:
            numbers = columns[TIME] if TIME in columns else self._random(first_row, count, columns)
            chosen = (numbers >= self.low) & (numbers < self.high)
        if self.named is not None:
            chosen &= columns[NAMED] == SPLITS.index(self.named)
        if self.below is not None:
            chosen &= random_numbers((self.seed, 1), columns[KEY]) < self.below
        if self.limit is not None and self.limit < self.num_rows:
            chosen &= self._looked_at(self.limit, first_row, count)
        return chosen

    def _looked_at(self, limit: int, first_row: int, count: int) -> np.ndarray:
        """Return a mask that has, over all rows, one random row of each of ``limit`` parts of about equal size."""
        import numpy as np

        rows = np.arange(first_row, first_row + count)
        part = rows * limit // self.num_rows
        begin, end = (-(-one * self.num_rows // limit) for one in (part, part + 1))
        numbers = random_numbers((self.seed, 1), part.astype(np.uint64))
        found: np.ndarray = rows == begin + (numbers * (end - begin)).astype(np.int64)
        return found

    def _random(self, first_row: int, count: int, columns: Columns) -> np.ndarray:
        import numpy as np

        places = np.arange(first_row, first_row + count, dtype=np.uint64)
        return random_numbers(self.seed, columns.get(KEY, places))

    def counts(self, pieces: Sequence[Piece], columns: Columns) -> list[int]:
        """Return how many rows of each piece belong to the split, by ``columns`` of all rows if they decide."""
        if self.is_whole and (self.limit is None or self.limit == self.num_rows):
            return [piece.num_rows for piece in pieces]
        if columns and not self.is_whole:
            mask = self.mask(0, self.num_rows, columns)
            return [int(mask[one.first_row : one.first_row + one.num_rows].sum()) for one in pieces]
        return [int(self.mask(one.first_row, one.num_rows, {}).sum()) for one in pieces]


@dataclass
class StreamSplit(Split):
    """A split that is read piece by piece.

    ``batches`` reads in this process. With several workers each one reads everything and keeps its part, so that the
    steps are the same for any number of workers; ``ray_shards`` shares the reading instead, which pays when reading
    costs more than Ray Data does (about 1.5 seconds for a million rows of 28 numbers, four times as long as reading).
    """

    reader: Reader
    pieces: Sequence[Piece]
    share: Share
    num_rows: int
    row_bytes: int
    """Size of a row once decoded."""
    num_shuffle_rows: int

    def batches(self, one: Pass) -> Iterator[Batch]:
        """Yield this worker's batches of one pass, shuffled in windows of ``num_shuffle_rows`` rows."""
        import numpy as np

        rng = np.random.default_rng((one.seed, one.epoch))
        chunks = self.chunks(rng.permutation(len(self.pieces))) if one.shuffle else self.chunks()
        if one.shuffle:
            chunks = _shuffled(chunks, rng, self.num_shuffle_rows)
        for number, step in enumerate(_steps(chunks, one.global_batch_size)):
            if number >= one.skip_steps:
                size = len(step["y"])
                yield take_rows(step, slice(*share_of(size, one.rank, one.world_size)), size)

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield the rows of every ``world_size``-th piece; with fewer pieces than workers, of a part of each chunk."""
        found = self._own_chunks(rank, world_size)
        first = next(found, None)
        yield take(next(self.chunks()), slice(0)) if first is None else first
        yield from found

    def _own_chunks(self, rank: int, world_size: int) -> Iterator[Columns]:
        if len(self.pieces) >= world_size:
            yield from self.chunks(range(rank, len(self.pieces), world_size))
            return
        for chunk in self.chunks():
            yield take(chunk, slice(*share_of(len(chunk["y"]), rank, world_size)))

    def chunks(self, order: Iterable[int] | None = None) -> Iterator[Columns]:
        """Yield the rows of the split, some at a time, piece by piece in ``order`` (by default the files')."""
        for index in range(len(self.pieces)) if order is None else order:
            row = self.pieces[index].first_row
            for columns in self.reader.read(self.pieces[index].key):
                count = len(columns["y"])
                chosen = self.share.mask(row, count, columns)
                columns = without_keys(columns)
                row += count
                if chosen.all():
                    yield columns
                elif chosen.any():
                    yield take(columns, chosen)

    def ray_dataset(self, seed: int | None = None) -> Any:
        """Return the split as a ray.data.Dataset, its pieces in a new order in each epoch if there is a ``seed``."""
        from rtrain.datasets.ray_shards import ray_dataset

        return ray_dataset(self, seed)

    def moments(self, max_rows: int) -> Moments:
        """Return mean and standard deviation over whole pieces, evenly spread, of about ``max_rows`` rows."""
        moments = Moments()
        for columns in self.chunks(self.spread(max_rows)):
            moments.add(columns["x"])
        return moments

    def spread(self, max_rows: int) -> range:
        """Return the numbers of whole pieces, evenly spread, that hold about ``max_rows`` rows of the split."""
        wanted = max(1, len(self.pieces) * max_rows // max(self.num_rows, 1))
        return range(0, len(self.pieces), max(1, -(-len(self.pieces) // wanted)))


def pieces_of(keys: Iterable[tuple[Any, int]], first_row: int = 0) -> list[Piece]:
    """Return the pieces for pairs of key and number of rows."""
    pieces = []
    for key, num_rows in keys:
        pieces.append(Piece(key, first_row, num_rows))
        first_row += num_rows
    return pieces


def _shuffled(chunks: Iterable[Columns], rng: np.random.Generator, num_rows: int) -> Iterator[Columns]:
    """Yield the rows in a random order: collect ``num_rows`` of them, shuffle, give out half, fill up again."""
    held: list[Columns] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk["y"])
        if size >= num_rows:
            window = joined(held)
            order = rng.permutation(size)
            yield take(window, order[: size - num_rows // 2])
            held, size = [take(window, order[size - num_rows // 2 :])], num_rows // 2
    if size:
        yield take(joined(held), rng.permutation(size))


def _steps(chunks: Iterable[Columns], size: int) -> Iterator[Columns]:
    """Yield the rows in steps of ``size``; the last one may be smaller."""
    held: list[Columns] = []
    count = 0
    for chunk in chunks:
        held.append(chunk)
        count += len(chunk["y"])
        if count >= size:
            window = joined(held)
            whole = count - count % size
            for start in range(0, whole, size):
                yield take(window, slice(start, start + size))
            held, count = [take(window, slice(whole, None))], count - whole
    if count:
        yield joined(held)
