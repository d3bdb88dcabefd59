from __future__ import annotations

import numpy as np
import pytest

from rtrain.datasets.conf import RowsConf, SplitConf
from rtrain.datasets.splitting.shares import evenly, shares, split_parts, split_rows
from rtrain.errors import DatasetError


@pytest.mark.parametrize("num_rows", [1, 7, 100, 1797])
@pytest.mark.parametrize("taken", [{}, {"test": 0.2}, {"test": 0.3, "val": 0.15}, {"val": 0.5}])
def test_each_row_is_in_one_split_and_sizes_are_rounded_shares(num_rows, taken):
    rows = split_rows(num_rows, taken, 3, None)
    assert sorted(np.concatenate(list(rows.values()))) == list(range(num_rows))
    for name, share in taken.items():
        assert len(rows[name]) == round(share * num_rows)


def test_each_class_is_split_alike():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    rows = split_rows(1000, {"test": 0.2, "val": 0.1}, 0, labels)
    assert np.abs(np.bincount(labels[rows["test"]]) - [120, 60, 20]).max() <= 1
    assert np.abs(np.bincount(labels[rows["val"]]) - [60, 30, 10]).max() <= 1


def test_a_split_depends_on_the_seed_alone():
    first, again, other = (split_rows(500, {"test": 0.2}, seed, None)["test"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_known_split_stays_what_it_was():
    assert split_rows(10, {"test": 0.3}, 0, None)["test"].tolist() == [1, 7, 9]


@pytest.mark.parametrize(("num_rows", "chosen"), [(10, 0), (10, 3), (10, 10), (1, 1), (999, 100)])
def test_evenly_chooses_exactly_so_many(num_rows, chosen):
    mask = evenly(num_rows, chosen)
    assert len(mask) == num_rows
    assert mask.sum() == chosen


@pytest.mark.parametrize(
    ("conf", "own", "expected"),
    [
        (SplitConf(), {"train"}, {"test": 0.2}),
        (SplitConf(val=0.1), {"train"}, {"val": 0.1}),
        (SplitConf(val=0.1, test=0.2), {"train"}, {"val": 0.1, "test": 0.2}),
        (SplitConf(), {"train", "val"}, {}),
        (SplitConf(), {"train", "test"}, {}),
        (SplitConf(val=0.1), {"train", "test"}, {"val": 0.1}),
        (SplitConf(test=0), {"train"}, {"test": 0}),
    ],
)
def test_shares_follow_the_documented_defaults(conf, own, expected):
    assert shares(conf, own) == expected


def test_a_share_of_a_split_that_the_data_has_is_an_error():
    with pytest.raises(DatasetError, match="already has a test split"):
        shares(SplitConf(test=0.1), {"train", "test"})


def test_shares_that_leave_nothing_are_an_error():
    with pytest.raises(DatasetError, match="leaves nothing for train"):
        shares(SplitConf(val=0.5, test=0.5), {"train"})


def part(num_rows):
    return {"x": np.zeros((num_rows, 1)), "y": np.arange(num_rows) % 2}


def test_zero_leaves_a_split_of_the_data_out():
    splits = split_parts({"train": part(10), "test": part(5)}, RowsConf(split=SplitConf(test=0)), True)
    assert {name: len(columns["y"]) for name, columns in splits.items()} == {"train": 10}


def test_an_empty_split_is_an_error_that_gives_the_numbers():
    with pytest.raises(DatasetError, match=r"split 'val' is empty: 0\.01 of 10 rows"):
        split_parts({"train": part(10)}, RowsConf(split=SplitConf(val=0.01)), True)


def test_limit_counts_before_the_split():
    splits = split_parts({"train": part(1000)}, RowsConf(limit=100), True)
    assert {name: len(columns["y"]) for name, columns in splits.items()} == {"train": 80, "test": 20}
    assert np.bincount(splits["train"]["y"]).tolist() == [40, 40]


def test_a_sample_is_a_share_of_each_class_before_the_split():
    splits = split_parts({"train": part(1000), "val": part(200)}, RowsConf(sample=0.1, split=SplitConf(test=0.2)), True)
    assert {name: len(columns["y"]) for name, columns in splits.items()} == {"train": 80, "val": 20, "test": 20}
    assert all(len(set(np.bincount(columns["y"]))) == 1 for columns in splits.values())


@pytest.mark.parametrize(("sample", "limit", "expected"), [(0.5, 100, 50), (0.5, 20, 20), (0.05, 20, 5)])
def test_of_sample_and_limit_the_smaller_one_counts(sample, limit, expected):
    splits = split_parts({"train": part(100)}, RowsConf(sample=sample, limit=limit, split=SplitConf(test=0)), True)
    assert len(splits["train"]["y"]) == expected


def test_a_sample_without_a_row_is_an_error_that_gives_the_numbers():
    with pytest.raises(DatasetError, match=r"dataset\.sample=0\.001 of 100 rows is less than one"):
        split_parts({"train": part(100)}, RowsConf(sample=0.001), True)


def queries(sizes):
    group = np.repeat(np.arange(len(sizes)) + 70, sizes)
    return {"x": np.zeros((len(group), 1)), "y": np.arange(len(group)), "group": group}


def test_limit_takes_whole_groups_before_the_split():
    splits = split_parts({"train": queries([2] * 50)}, RowsConf(limit=20), False)
    assert {name: len(columns["y"]) for name, columns in splits.items()} == {"train": 16, "test": 4}
    groups = {name: set(columns["group"].tolist()) for name, columns in splits.items()}
    assert not groups["train"] & groups["test"]
    assert groups["train"] | groups["test"] != set(range(70, 80)), "the first groups are not the chosen ones"


@pytest.mark.parametrize(("limit", "expected"), [(1, [5]), (5, [5]), (11, [5, 5]), (15, [5, 5, 5])])
def test_limit_never_cuts_a_group_and_keeps_at_least_one(limit, expected):
    splits = split_parts({"train": queries([5] * 9)}, RowsConf(limit=limit, split=SplitConf(test=0)), False)
    assert np.unique(splits["train"]["group"], return_counts=True)[1].tolist() == expected


def test_a_sample_takes_whole_groups():
    splits = split_parts({"train": queries([5] * 100)}, RowsConf(sample=0.1), False)
    sizes = {name: np.unique(columns["group"], return_counts=True)[1].tolist() for name, columns in splits.items()}
    assert sizes == {"train": [5] * 8, "test": [5] * 2}


def test_a_share_of_groups_that_a_limit_leaves_empty_is_an_error():
    with pytest.raises(DatasetError, match=r"split 'test' is empty: 0\.2 of 1 groups"):
        split_parts({"train": queries([5] * 9)}, RowsConf(limit=5), False)
