from __future__ import annotations

import itertools
import pickle
import time

import numpy as np
import pytest

from rtrain.datasets.base import EpochPlan, ResidentSplit
from rtrain.errors import DatasetError


def split_of(num_rows):
    return ResidentSplit({"x": np.arange(num_rows, dtype=np.float32)[:, None], "y": np.arange(num_rows)})


def steps_of(split, world_size, global_batch_size, **more):
    """Return the rows of each step, those of all workers one after another."""
    workers = [
        list(
            split.batches(EpochPlan(rank=r, world_size=world_size, global_batch_size=global_batch_size, seed=7, **more))
        )
        for r in range(world_size)
    ]
    return [(np.concatenate([batch.y for batch in step]), step) for step in zip(*workers, strict=True)]


@pytest.mark.parametrize(
    ("num_rows", "batch", "world_size"), list(itertools.product([1, 5, 64, 97], [1, 3, 32, 200], [1, 2, 3, 7]))
)
def test_each_row_comes_exactly_once(num_rows, batch, world_size):
    steps = steps_of(split_of(num_rows), world_size, batch)
    assert sorted(np.concatenate([rows for rows, _ in steps])) == list(range(num_rows))
    for rows, parts in steps:
        assert {part.num_global for part in parts} == {len(rows)}
        sizes = [len(part.y) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_steps_hold_the_same_rows_for_any_number_of_workers(world_size):
    one, many = (steps_of(split_of(1000), workers, 64) for workers in (1, world_size))
    for (rows, _), (others, _) in zip(one, many, strict=True):
        np.testing.assert_array_equal(rows, others)


def test_epochs_differ_and_repeat():
    split = split_of(100)
    first, again, second = (steps_of(split, 1, 100, epoch=epoch)[0][0] for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()


def test_skipped_steps_are_those_at_the_beginning():
    whole, rest = steps_of(split_of(100), 2, 16), steps_of(split_of(100), 2, 16, skip_rows=48)
    assert len(rest) == len(whole) - 3
    np.testing.assert_array_equal(whole[3][0], rest[0][0])


def test_without_shuffle_rows_come_in_order():
    assert np.concatenate([rows for rows, _ in steps_of(split_of(50), 3, 8, shuffle=False)]).tolist() == list(range(50))


def test_a_pickled_split_gives_the_same_batches():
    split = split_of(50)
    for (rows, _), (others, _) in zip(
        steps_of(split, 1, 8), steps_of(pickle.loads(pickle.dumps(split)), 1, 8), strict=True
    ):
        np.testing.assert_array_equal(rows, others)


def test_a_batch_in_memory_costs_microseconds():
    x = np.zeros((20_000, 1, 28, 28), np.uint8)
    split = ResidentSplit({"x": x, "y": np.zeros(20_000, np.int64)})
    one = EpochPlan(rank=0, world_size=1, global_batch_size=64, seed=0)
    list(split.batches(one))
    start = time.perf_counter()
    num_batches = sum(1 for _ in split.batches(one))
    assert (time.perf_counter() - start) / num_batches < 0.002


@pytest.mark.parametrize("short", ["x", "y", "weight"])
def test_columns_with_different_numbers_of_rows_are_told(short):
    columns = {"x": np.zeros((9, 2)), "y": np.zeros(9), "weight": np.ones(9)}
    with pytest.raises(DatasetError, match=f"{short} has 6"):
        ResidentSplit(columns | {short: columns[short][:6]})
