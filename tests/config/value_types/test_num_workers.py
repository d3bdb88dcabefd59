"""How many workers: what the config takes, and what everything else reads."""

import pickle

import pytest

from rtrain.config.value_types.num_workers import Elastic, read_num_workers


@pytest.mark.parametrize("value", [0, 1, 8, "8"])
def test_a_whole_number_is_taken_as_it_is(value):
    assert read_num_workers(value) == int(value)
    assert not isinstance(read_num_workers(value), Elastic)


@pytest.mark.parametrize("value", [[1, 8], (1, 8), {"min": 1, "max": 8}, {"min": "1", "max": "8"}])
def test_a_range_reads_as_its_largest_number_and_knows_its_smallest(value):
    found = read_num_workers(value)
    assert isinstance(found, Elastic)
    assert (found, found.min) == (8, 1)
    copy = pickle.loads(pickle.dumps(found))
    assert (copy, copy.min) == (8, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "must be a whole number, or a range"),
        (2.0, "must be a whole number, or a range"),
        ("two", "must be a whole number, or a range"),
        (None, "must be a whole number, or a range"),
        (-1, "must be at least 0"),
        ([2], "must be a range of two whole numbers"),
        ([1, 2, 3], "must be a range of two whole numbers"),
        ([1, 2.5], "must be a range of two whole numbers"),
        ([1, True], "must be a range of two whole numbers"),
        ([0, 4], "must be a range that starts at 1 or more"),
        ([4, 2], "has a min of 4 above its max of 2"),
        ({"min": 1}, "only min and max"),
        ({"min": 1, "max": 2, "mix": 3}, "only min and max"),
        ({"min": 1, "max": None}, "must be a range of two whole numbers"),
    ],
)
def test_anything_else_is_refused_with_the_reason(value, message):
    with pytest.raises(ValueError, match=message):
        read_num_workers(value)
