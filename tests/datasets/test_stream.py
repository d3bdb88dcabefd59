from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from rtrain.datasets.base import Pass
from rtrain.datasets.stream import Share, StreamSplit, pieces_of


@dataclass(frozen=True)
class Counting:
    """Reads pieces of consecutive numbers, ten at a time."""

    def read(self, key):
        for start in range(key[0], key[1], 10):
            numbers = np.arange(start, min(start + 10, key[1]))
            yield {"x": numbers.astype(np.float32)[:, None], "y": numbers}


def split_of(num_rows, share=None, num_shuffle_rows=50, piece=37):
    keys = [((low, min(low + piece, num_rows)), min(piece, num_rows - low)) for low in range(0, num_rows, piece)]
    pieces = pieces_of(keys)
    share = share or Share()
    return StreamSplit(Counting(), pieces, share, sum(share.counts(pieces, {})), 12, num_shuffle_rows)


def steps_of(split, world_size, global_batch_size, **more):
    workers = [
        list(split.batches(Pass(rank=r, world_size=world_size, global_batch_size=global_batch_size, seed=7, **more)))
        for r in range(world_size)
    ]
    return [np.concatenate([batch.y for batch in step]) for step in zip(*workers, strict=True)]


@pytest.mark.parametrize("num_rows", [1, 36, 37, 200, 333])
@pytest.mark.parametrize("batch", [1, 16, 64, 500])
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_each_row_comes_exactly_once_in_the_same_steps(num_rows, batch, world_size, shuffle):
    steps = steps_of(split_of(num_rows), world_size, batch, shuffle=shuffle)
    alone = steps_of(split_of(num_rows), 1, batch, shuffle=shuffle)
    assert sorted(np.concatenate(steps)) == list(range(num_rows))
    assert {len(step) for step in steps[:-1]} <= {batch}
    for step, other in zip(steps, alone, strict=True):
        np.testing.assert_array_equal(step, other)


@pytest.mark.parametrize(("num_rows", "piece"), [(2, 37), (1, 37), (3, 1), (5, 2)])
def test_a_worker_without_rows_knows_their_shapes(num_rows, piece):
    split = split_of(num_rows, piece=piece)
    shares = [list(split.own_rows(rank, 4)) for rank in range(4)]
    assert all(shares)
    assert {chunk["x"].shape[1:] for share in shares for chunk in share} == {(1,)}
    assert sorted(np.concatenate([chunk["y"] for share in shares for chunk in share])) == list(range(num_rows))


def test_a_worker_whose_pieces_have_no_row_of_the_split_knows_their_shapes():
    split = split_of(8, Share(num_rows=8, limit=1), piece=2)
    shares = [list(split.own_rows(rank, 4)) for rank in range(4)]
    assert sorted(sum(len(chunk["y"]) for chunk in share) for share in shares) == [0, 0, 0, 1]


def test_epochs_differ_and_repeat_and_can_be_resumed():
    split = split_of(300)
    first, again, second = (np.concatenate(steps_of(split, 1, 32, epoch=epoch)) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    np.testing.assert_array_equal(np.concatenate(steps_of(split, 2, 32, skip_steps=4)), first[128:])


def test_shuffling_mixes_pieces():
    first = steps_of(split_of(1000, num_shuffle_rows=500), 1, 100)[0]
    assert len({row // 37 for row in first}) > 5


def test_shares_are_disjoint_and_complete():
    shares = [Share(3, 0.0, 0.2), Share(3, 0.2, 0.5), Share(3, 0.5, 1.0)]
    rows = [np.concatenate(steps_of(split_of(2000, share), 1, 64)) for share in shares]
    assert sorted(np.concatenate(rows)) == list(range(2000))
    assert [len(found) for found in rows] == [split_of(2000, share).num_rows for share in shares]
    assert abs(len(rows[0]) - 400) < 60


@pytest.mark.parametrize(("num_rows", "limit"), [(500, 120), (500, 250), (500, 499), (500, 1), (7, 3)])
def test_limit_looks_at_exactly_so_many_rows_wherever_reading_begins(num_rows, limit):
    share = Share(num_rows=num_rows, limit=limit)
    assert split_of(num_rows, share).num_rows == limit
    masks = [share.mask(first, min(3, num_rows - first), {}) for first in range(0, num_rows, 3)]
    assert np.concatenate(masks).sum() == limit


def test_limit_does_not_follow_a_pattern_of_the_rows():
    rows = np.flatnonzero(Share(num_rows=10_000, limit=2_000).mask(0, 10_000, {}))
    assert np.histogram(rows, 10, (0, 10_000))[0].tolist() == [200] * 10
    assert np.bincount(rows % 5).min() > 300


def test_a_share_does_not_depend_on_where_reading_begins():
    share = Share(5, 0.2, 0.7)
    np.testing.assert_array_equal(share.mask(0, 100, {})[40:], share.mask(40, 60, {}))
    assert 0.45 < share.mask(0, 10_000, {}).mean() < 0.55


def test_a_pickled_split_gives_the_same_rows():
    np.testing.assert_array_equal(
        np.concatenate(steps_of(split_of(100), 1, 8)),
        np.concatenate(steps_of(pickle.loads(pickle.dumps(split_of(100))), 1, 8)),
    )


def test_statistics_come_from_whole_pieces_spread_over_the_split():
    assert split_of(370).moments(10_000).mean == (184.5,)
    sampled = split_of(370).moments(80).mean[0]
    assert 0 < sampled < 369
