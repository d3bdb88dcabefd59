from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from rtrain.datasets.base import EpochPlan, ResidentSplit, ShardLayout
from rtrain.datasets.streamed import RowFilter, StreamSplit, pieces_of
from rtrain.errors import DatasetError


@dataclass(frozen=True)
class Counting:
    """Reads pieces of consecutive numbers, ten at a time."""

    def read(self, key):
        for start in range(key[0], key[1], 10):
            numbers = np.arange(start, min(start + 10, key[1]))
            yield {"x": numbers.astype(np.float32)[:, None], "y": numbers}


def split_of(num_rows, row_filter=None, num_shuffle_rows=50, piece=37):
    keys = [((low, min(low + piece, num_rows)), min(piece, num_rows - low)) for low in range(0, num_rows, piece)]
    pieces = pieces_of(keys)
    row_filter = row_filter or RowFilter()
    return StreamSplit(Counting(), pieces, row_filter, row_filter.counts(pieces, {}), 12, num_shuffle_rows)


def batches_of(split, world_size, global_batch_size, **more):
    """Return for each step the batches of all workers."""
    passes = [
        EpochPlan(rank=rank, world_size=world_size, global_batch_size=global_batch_size, seed=7, **more)
        for rank in range(world_size)
    ]
    return list(zip(*(split.batches(one) for one in passes), strict=True))


def steps_of(split, world_size, global_batch_size, **more):
    steps = batches_of(split, world_size, global_batch_size, **more)
    return [np.concatenate([batch.y for batch in step]) for step in steps]


@pytest.mark.parametrize("num_rows", [1, 36, 37, 200, 333])
@pytest.mark.parametrize("batch", [1, 16, 64, 500])
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_each_row_comes_exactly_once_in_steps_shared_like_those_of_rows_in_memory(num_rows, batch, world_size, shuffle):
    steps = batches_of(split_of(num_rows), world_size, batch, shuffle=shuffle)
    assert sorted(row for step in steps for own in step for row in own.y) == list(range(num_rows))
    rows = np.arange(num_rows)
    resident = batches_of(ResidentSplit({"x": rows[:, None], "y": rows}), world_size, batch, shuffle=shuffle)
    for step, other in zip(steps, resident, strict=True):
        for own, same in zip(step, other, strict=True):
            assert (len(own.y), own.num_global) == (len(same.y), same.num_global)
            assert own.x.shape == (len(own.y), 1)


def test_one_worker_reads_in_the_order_of_the_data_if_nothing_is_shuffled():
    np.testing.assert_array_equal(np.concatenate(steps_of(split_of(333), 1, 16, shuffle=False)), np.arange(333))


@pytest.mark.parametrize("kind", ["stream", "resident"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("workers", [(1, 2, 1), (2, 1, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2)])
@pytest.mark.parametrize("sizes", [(16, 16, 16), (16, 10, 7), (7, 64, 16)])
def test_over_interruptions_each_row_comes_once_with_any_numbers_of_workers_and_rows_per_step(
    kind, shuffle, workers, sizes
):
    rows = np.arange(333)
    split = split_of(333) if kind == "stream" else ResidentSplit({"x": rows[:, None], "y": rows})
    taken, began = [], ShardLayout(num_workers=workers[0], rows_per_step=sizes[0])
    for world_size, size in zip(workers, sizes, strict=True):
        steps = steps_of(split, world_size, size, shuffle=shuffle, epoch=2, skip_rows=len(taken), began=began)
        taken += [row for step in steps[:3] for row in step]
    rest = steps_of(split, 1, 50, shuffle=shuffle, epoch=2, skip_rows=len(taken), began=began)
    taken += [row for step in rest for row in step]
    assert sorted(taken) == list(range(333))
    whole = np.concatenate(steps_of(split, workers[0], sizes[0], shuffle=shuffle, epoch=2))
    np.testing.assert_array_equal(taken, whole)


@pytest.mark.parametrize(("num_rows", "piece"), [(2, 37), (1, 37), (3, 1), (5, 2)])
def test_a_worker_without_rows_knows_their_shapes(num_rows, piece):
    split = split_of(num_rows, piece=piece)
    shares = [list(split.own_rows(rank, 4)) for rank in range(4)]
    assert all(shares)
    assert {chunk["x"].shape[1:] for share in shares for chunk in share} == {(1,)}
    assert sorted(np.concatenate([chunk["y"] for share in shares for chunk in share])) == list(range(num_rows))


def test_a_worker_whose_pieces_have_no_row_of_the_split_knows_their_shapes():
    split = split_of(8, RowFilter(num_rows=8, limit=1), piece=2)
    shares = [list(split.own_rows(rank, 4)) for rank in range(4)]
    assert sorted(sum(len(chunk["y"]) for chunk in share) for share in shares) == [0, 0, 0, 1]


def test_epochs_differ_and_repeat_and_can_be_resumed():
    split = split_of(300)
    first, again, second = (np.concatenate(steps_of(split, 1, 32, epoch=epoch)) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    np.testing.assert_array_equal(np.concatenate(steps_of(split, 1, 32, skip_rows=128)), first[128:])


class Noting(Counting):
    """Notes which pieces are read."""

    def __init__(self):
        object.__setattr__(self, "seen", [])

    def read(self, key):
        self.seen.append(key)
        yield from super().read(key)


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_worker_reads_its_share_and_after_an_interruption_what_is_left_of_it(shuffle):
    split = split_of(3700)
    split.reader = reader = Noting()
    one = EpochPlan(rank=1, world_size=4, global_batch_size=40, seed=7, shuffle=shuffle)
    list(split.batches(one))
    assert 25 <= len(reader.seen) <= 27
    reader.seen.clear()
    list(split.batches(replace(one, skip_rows=40 * 46)))
    assert 12 <= len(reader.seen) <= 15


def test_a_piece_that_has_other_rows_than_were_counted_is_named():
    split = split_of(100)
    split.counts = [37, 38, 26]
    split.num_rows = 101
    with pytest.raises(DatasetError, match="the split has 37 rows, but 38 were counted"):
        list(split.batches(EpochPlan(rank=0, world_size=1, global_batch_size=8, seed=0)))


def test_shuffling_mixes_pieces():
    first = steps_of(split_of(1000, num_shuffle_rows=500), 1, 100)[0]
    assert len({row // 37 for row in first}) > 5


def test_shares_are_disjoint_and_complete():
    shares = [RowFilter(3, 0.0, 0.2), RowFilter(3, 0.2, 0.5), RowFilter(3, 0.5, 1.0)]
    rows = [np.concatenate(steps_of(split_of(2000, share), 1, 64)) for share in shares]
    assert sorted(np.concatenate(rows)) == list(range(2000))
    assert [len(found) for found in rows] == [split_of(2000, share).num_rows for share in shares]
    assert abs(len(rows[0]) - 400) < 60


@pytest.mark.parametrize(("num_rows", "limit"), [(500, 120), (500, 250), (500, 499), (500, 1), (7, 3)])
def test_limit_looks_at_exactly_so_many_rows_wherever_reading_begins(num_rows, limit):
    row_filter = RowFilter(num_rows=num_rows, limit=limit)
    assert split_of(num_rows, row_filter).num_rows == limit
    masks = [row_filter.mask(first, min(3, num_rows - first), {}) for first in range(0, num_rows, 3)]
    assert np.concatenate(masks).sum() == limit


def test_limit_does_not_follow_a_pattern_of_the_rows():
    rows = np.flatnonzero(RowFilter(num_rows=10_000, limit=2_000).mask(0, 10_000, {}))
    assert np.histogram(rows, 10, (0, 10_000))[0].tolist() == [200] * 10
    assert np.bincount(rows % 5).min() > 300


def test_a_share_does_not_depend_on_where_reading_begins():
    row_filter = RowFilter(5, 0.2, 0.7)
    np.testing.assert_array_equal(row_filter.mask(0, 100, {})[40:], row_filter.mask(40, 60, {}))
    assert 0.45 < row_filter.mask(0, 10_000, {}).mean() < 0.55


def test_a_pickled_split_gives_the_same_rows():
    np.testing.assert_array_equal(
        np.concatenate(steps_of(split_of(100), 1, 8)),
        np.concatenate(steps_of(pickle.loads(pickle.dumps(split_of(100))), 1, 8)),
    )


def test_statistics_come_from_whole_pieces_spread_over_the_split():
    assert split_of(370).moments(10_000).mean == (184.5,)
    sampled = split_of(370).moments(80).mean[0]
    assert 0 < sampled < 369
