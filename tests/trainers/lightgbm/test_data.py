"""Rows as LightGBM's datasets: on several workers the bins come from the rows of all."""

import numpy as np
import pytest
from boosting_runs import make_dataset as dataset_of

from rtrain.trainers.lightgbm.inputs import make_dataset, shared_bins

PARAMS = {"seed": 0, "verbosity": -1, "feature_pre_filter": False}


def sorted_dataset(num_rows=600):
    x = np.random.default_rng(0).normal(size=(num_rows, 3)).astype("float32")
    x = x[np.argsort(x[:, 0])]
    return dataset_of({"x": x, "y": x[:, 0]}, np.arange(num_rows))


def binned_rows(data, folder):
    """The bins of each row, by LightGBM's own account."""
    data.construct()._dump_text(folder / "bins.txt")
    lines = (folder / "bins.txt").read_text().splitlines()
    return [line for line in lines if line and line[0].isdigit() and ":" not in line]


def test_every_worker_has_the_bins_of_one_that_holds_all_rows(tmp_path):
    dataset = sorted_dataset()
    train, info = dataset.splits["train"], dataset.info
    alone = make_dataset(train, info, (0, 1), PARAMS)
    shares = [make_dataset(train, info, (rank, 2), PARAMS, shared_bins(train, info, PARAMS)) for rank in (0, 1)]
    both = [line for share in shares for line in binned_rows(share, tmp_path)]
    assert len(both) == train.num_rows
    assert both == binned_rows(alone, tmp_path)


def test_large_data_is_binned_by_a_sample_of_all_rows(tmp_path):
    dataset = sorted_dataset()
    train, info = dataset.splits["train"], dataset.info
    params = {**PARAMS, "bin_construct_sample_cnt": 100, "min_data_in_bin": 1}
    bins = shared_bins(train, info, params)
    assert bins.num_data() == 100
    assert 90 < bins.feature_num_bin(0) <= 101
    shares = [binned_rows(make_dataset(train, info, (rank, 2), params, bins), tmp_path) for rank in (0, 1)]
    used = [len({line.split(",")[0] for line in share}) for share in shares]
    assert used == pytest.approx([50, 50], abs=12)
