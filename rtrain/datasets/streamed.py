"""Splits that are read from their files in each epoch: for data that is larger than memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from rtrain.datasets.base import Batch, Columns, EpochPlan, ShardLayout, Split, concatenated, share_of, take, take_rows
from rtrain.datasets.mean_std import Moments
from rtrain.datasets.splitting.left_out import SPLITS
from rtrain.datasets.splitting.row_hash import random_numbers
from rtrain.datasets.splitting.shares import KEY, NAMED, TIME, without_keys
from rtrain.errors import DatasetError


@dataclass(frozen=True)
class Piece:
    """A part of the files that is read in one go: a row group, a text file, some images."""

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
class RowFilter:
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

    def of_groups(self, keys: np.ndarray) -> RowFilter:
        """Return the filter that looks at as many whole groups as fit into ``limit``, at least one.

        Args:
            keys: (num_rows,) uint64, the ``KEY`` of all rows.
        """
        groups, counts = np.unique(keys, return_counts=True)
        numbers = random_numbers((self.seed, 1), groups)
        order = np.argsort(numbers, kind="stable")
        wanted = self.num_rows if self.limit is None else self.limit
        fitting = max(1, int(np.searchsorted(np.cumsum(counts[order]), wanted, side="right")))
        below = numbers[order[fitting]] if fitting < len(groups) else None
        return replace(self, limit=None, below=below)

    def mask(self, first_row: int, count: int, columns: Columns) -> np.ndarray:
        """Return which of the rows from ``first_row`` on belong to the split, by ``columns`` if they decide."""
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
        rows = np.arange(first_row, first_row + count)
        part = rows * limit // self.num_rows
        begin, end = (-(-one * self.num_rows // limit) for one in (part, part + 1))
        numbers = random_numbers((self.seed, 1), part.astype(np.uint64))
        found: np.ndarray = rows == begin + (numbers * (end - begin)).astype(np.int64)
        return found

    def _random(self, first_row: int, count: int, columns: Columns) -> np.ndarray:
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
    """A split that is read piece by piece, by each worker in its own process.

    A pass has an order of its pieces that all workers agree on. Its rows are cut into a contiguous part for each
    worker, as long as what the worker takes in all steps: each one reads its own part, and of pieces at a border the
    whole. In a part, rows are shuffled in windows, each by a separate permutation, so that any position can be
    found again without reading the rows before it.
    """

    reader: Reader
    pieces: Sequence[Piece]
    row_filter: RowFilter
    counts: Sequence[int]
    """Rows of each piece that belong to the split."""
    row_bytes: int
    """Size of a row once decoded."""
    num_shuffle_rows: int
    """Rows of a window, of all workers together."""

    def __post_init__(self) -> None:
        self.num_rows = sum(self.counts)

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass.

        What is left of a pass that began with another number of workers, or other steps, is read by every worker whole.

        Raises:
            DatasetError: A piece has other rows than when they were counted.
        """
        began = plan.began or plan.layout
        reads_own = began == plan.layout and plan.skip_rows % plan.global_batch_size == 0
        rows = ahead(self._part(plan, began, plan.rank, plan.skip_rows)) if reads_own else self._rest(plan, began)
        rebatched = Rebatcher(rows, self._no_rows)
        for start in range(plan.skip_rows, self.num_rows, plan.global_batch_size):
            size = min(plan.global_batch_size, self.num_rows - start)
            low, high = share_of(size, plan.rank, plan.world_size)
            own = rebatched.next(high - low) if reads_own else take(rebatched.next(size), slice(low, high))
            yield take_rows(own, slice(None), size)

    def _rest(self, plan: EpochPlan, began: ShardLayout) -> Iterator[Columns]:
        """Yield all rows of a pass after the first ``plan.skip_rows``, in the order of the steps that it began with."""
        first = plan.skip_rows - plan.skip_rows % began.rows_per_step
        parts = [Rebatcher(self._part(plan, began, rank, first), self._no_rows) for rank in range(began.num_workers)]
        for start in range(first, self.num_rows, began.rows_per_step):
            size = min(began.rows_per_step, self.num_rows - start)
            borders = [share_of(size, rank, began.num_workers) for rank in range(began.num_workers)]
            step = concatenated([part.next(high - low) for part, (low, high) in zip(parts, borders, strict=True)])
            yield take(step, slice(max(0, plan.skip_rows - start), None))

    def _part(self, plan: EpochPlan, layout: ShardLayout, rank: int, skip_rows: int) -> Iterator[Columns]:
        """Return a worker's rows of a pass, but for those among the first ``skip_rows`` of all workers."""
        begin = sum(layout.own_rows(before, self.num_rows) for before in range(rank))
        end, skip = begin + layout.own_rows(rank, self.num_rows), layout.own_rows(rank, skip_rows)
        if not plan.shuffle:
            return self.chunks(first=begin + skip, last=end)
        size = max(2, self.num_shuffle_rows // layout.num_workers)
        return self._shuffled(plan, rank, range(begin, end), skip, size)

    def _shuffled(self, plan: EpochPlan, rank: int, part: range, skip: int, size: int) -> Iterator[Columns]:
        """Yield the rows of a worker's part after the first ``skip``, mixed in windows.

        Args:
            plan: The pass.
            rank: Of the worker.
            part: Places of the worker's rows in the pass.
            skip: Rows of the part to leave out.
            size: Rows of a window.
        """
        order = np.random.default_rng((plan.seed, plan.epoch)).permutation(len(self.pieces)).tolist()
        starts = part[skip - skip % size :: size]
        rows = Rebatcher(self.chunks(order, starts.start, part.stop), self._no_rows)
        for number, start in enumerate(starts, skip // size):
            count = min(size, part.stop - start)
            mixed = np.random.default_rng((plan.seed, plan.epoch, rank, number)).permutation(count)
            yield take(rows.next(count), mixed[max(0, skip - number * size) :])
        rows.finish()

    def _no_rows(self) -> Columns:
        return take(next(self.chunks()), slice(0))

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

    def chunks(self, order: Iterable[int] | None = None, first: int = 0, last: int | None = None) -> Iterator[Columns]:
        """Yield the rows of the split, some at a time, piece by piece in ``order`` (by default the files').

        Args:
            order: Numbers of pieces.
            first: Rows to leave out at the beginning; pieces that have no others are not read.
            last: The row to end before; None: all rows.

        Raises:
            DatasetError: A piece has other rows than when they were counted.
        """
        begin, last = 0, self.num_rows if last is None else last
        for index in range(len(self.pieces)) if order is None else order:
            row = begin
            begin += self.counts[index]
            if begin <= first or row >= last:
                continue
            place = self.pieces[index].first_row
            for read in self.reader.read(self.pieces[index].key):
                columns = self._chosen(read, place)
                count = len(columns["y"])
                if count and row < last and row + count > first:
                    yield take(columns, slice(max(0, first - row), last - row))
                place, row = place + len(read["y"]), row + count
            if row != begin:
                raise _changed(self.pieces[index].key, self.counts[index] - begin + row, self.counts[index])

    def _chosen(self, columns: Columns, first_row: int) -> Columns:
        """Return the rows of the split among those from ``first_row`` on, without what decides it."""
        chosen = self.row_filter.mask(first_row, len(columns["y"]), columns)
        columns = without_keys(columns)
        return columns if chosen.all() else take(columns, chosen)

    def moments(self, max_rows: int) -> Moments:
        """Return mean and standard deviation over whole pieces, evenly spread, of about ``max_rows`` rows."""
        moments = Moments()
        for columns in self.chunks(self.spread(max_rows)):
            moments.add(columns["x"])
        return moments

    def spread(self, max_rows: int) -> list[int]:
        """Return the numbers of whole pieces, evenly spread, that hold about ``max_rows`` rows of the split."""
        units = self.units()
        wanted = max(1, len(units) * max_rows // max(self.num_rows, 1))
        return [piece for unit in units[:: max(1, -(-len(units) // wanted))] for piece in unit]

    def units(self) -> list[list[int]]:
        """Return the numbers of the pieces, those together that ``spread`` takes together."""
        return [[number] for number in range(len(self.pieces))]


def _changed(key: Any, there: int, counted: int) -> DatasetError:
    where = key[0] if isinstance(key, tuple) else key
    message = f"{where}: the split has {there} rows, but {counted} were counted."
    return DatasetError(message, "The files changed while they were read.")


def pieces_of(keys: Iterable[tuple[Any, int]], first_row: int = 0) -> list[Piece]:
    """Return the pieces for pairs of key and number of rows."""
    pieces = []
    for key, num_rows in keys:
        pieces.append(Piece(key, first_row, num_rows))
        first_row += num_rows
    return pieces


class Rebatcher:
    """Gives out rows in any numbers.

    Args:
        chunks: The rows.
        no_rows: Makes columns without rows, for when none have been read yet.
    """

    def __init__(self, chunks: Iterator[Columns], no_rows: Callable[[], Columns]) -> None:
        self._chunks, self._no_rows = chunks, no_rows
        self._held: Columns | None = None

    def next(self, count: int) -> Columns:
        """Return the next ``count`` rows; there must be as many."""
        parts: list[Columns] = []
        while count > 0:
            if self._held is None or len(self._held["y"]) == 0:
                self._held = next(self._chunks)
            parts.append(take(self._held, slice(count)))
            self._held = take(self._held, slice(count, None))
            count -= len(parts[-1]["y"])
        if not parts and self._held is None:
            self._held = self._no_rows()
        return concatenated(parts) if parts else take(cast("Columns", self._held), slice(0))

    def finish(self) -> None:
        """Let the reader come to its end, where it counts the rows of its last piece."""
        deque(self._chunks, maxlen=0)


def ahead(chunks: Iterator[Columns]) -> Iterator[Columns]:
    """Yield the same, each read by a thread while the one before is in use."""
    with ThreadPoolExecutor(1, "rtrain-read") as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk
