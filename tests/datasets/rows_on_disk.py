"""Compares texts that stay on disk with the same ones in memory."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np

from rtrain.datasets.base import Columns, Dataset, EpochPlan, concatenated


def check_same_rows(held: Dataset, mapped: Dataset) -> None:
    """Fail unless both have the same rows in the same order, also after they were sent to a worker."""
    assert (held.info.memory, mapped.info.memory) == ("resident", "stream")
    of_place = {"memory": "", "memory_reason": "", "fingerprint": ""}
    assert replace(held.info, **of_place) == replace(mapped.info, **of_place)
    assert (held.encoding, [*held.splits]) == (mapped.encoding, [*mapped.splits])
    plan = EpochPlan(rank=1, world_size=2, global_batch_size=64, seed=3)
    mapped = pickle.loads(pickle.dumps(mapped))
    for name, split in held.splits.items():
        assert split.num_rows == mapped.splits[name].num_rows
        _check_equal(_all_rows(held, name), _all_rows(mapped, name))
        for one, other in zip(split.batches(plan), mapped.splits[name].batches(plan), strict=True):
            _check_equal({"x": one.x, "y": one.y}, {"x": other.x, "y": other.y})


def _all_rows(dataset: Dataset, name: str) -> Columns:
    return concatenated([part for rank in range(3) for part in dataset.splits[name].own_rows(rank, 3)])


def _check_equal(want: Columns, found: Columns) -> None:
    assert want.keys() == found.keys()
    for column, values in want.items():
        assert values.dtype == found[column].dtype
        np.testing.assert_array_equal(values, found[column])
