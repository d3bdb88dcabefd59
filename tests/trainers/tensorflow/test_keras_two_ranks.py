"""Two processes train what one process trains."""

import numpy as np
import pytest
from keras_runs import DROPOUT, assert_same, fit, fit_rank, make_conf, weights

from rtrain.testing.small_data import UnevenSplit, small_dataset

CLOSE = {"rtol": 2e-4, "atol": 1e-5}


def test_two_ranks_train_what_one_trains(tmp_path, ranks):
    conf = make_conf(metrics={"top2": {"_target_": "keras.metrics.SparseTopKCategoricalAccuracy", "k": 2}})
    one = fit(tmp_path / "one", conf)
    two = ranks.run(fit_rank, tmp_path / "two", conf)
    assert_same(weights(tmp_path / "one"), weights(tmp_path / "two"), **CLOSE)
    assert two[1].of("metrics") == []
    for name in ("train/epoch_loss", "test/loss", "test/accuracy", "test/top2"):
        assert two[0].metrics[name] == pytest.approx(one.metrics[name], rel=1e-4)
    rows = [channel.of("worker")[-1]["facts"]["num_rows"] for channel in two]
    assert [sum(row[name] for row in rows) for name in ("train", "test")] == [150, 37]


def test_a_step_with_fewer_rows_than_ranks_leaves_one_rank_without(tmp_path, ranks):
    conf, data = make_conf(), small_dataset(num_rows=(33, 1))
    fit(tmp_path / "one", conf, data)
    ranks.run(fit_rank, tmp_path / "two", conf, data)
    assert_same(weights(tmp_path / "one"), weights(tmp_path / "two"), **CLOSE)


def test_two_ranks_resume_to_the_same_numbers(tmp_path, ranks):
    conf = make_conf(model=DROPOUT)
    ranks.run(fit_rank, tmp_path / "a", conf)
    stopped = ranks.run(fit_rank, tmp_path / "b", conf, stop_after=(None, 1))
    assert stopped[0].of("checkpoint")[-1]["step"] < 15, "the wish of one rank stops both"
    ranks.run(fit_rank, tmp_path / "b", conf)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), rtol=0, atol=0)


def test_a_checkpoint_of_two_ranks_is_resumed_by_one(tmp_path, ranks):
    ranks.run(fit_rank, tmp_path / "b", make_conf(max_epochs=1))
    fit(tmp_path / "b", make_conf(max_epochs=2))
    fit(tmp_path / "one", make_conf(max_epochs=2))
    assert_same(weights(tmp_path / "b"), weights(tmp_path / "one"), **CLOSE)


def test_uneven_streams_lose_no_row_and_hang_nobody(tmp_path, ranks):
    two = ranks.run(fit_rank, tmp_path, make_conf(max_epochs=2), small_dataset(split=UnevenSplit))
    rows = [channel.of("worker")[-1]["facts"]["num_rows"] for channel in two]
    assert [row["train"] for row in rows] == [30, 120]
    assert [row["test"] for row in rows] == [7, 30]
    assert np.isfinite(two[0].metrics["test/loss"])
