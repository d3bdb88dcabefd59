"""Files of trees that another account wrote: what XGBoost and LightGBM take on trust is looked at before."""

from __future__ import annotations

import re
from dataclasses import replace

import boosting_runs
import lightgbm
import numpy as np
import pytest
import xgboost

from rtrain.errors import CheckpointError
from rtrain.testing.workers import newest
from rtrain.trainers.lightgbm.model_file import MODEL, read_trees
from rtrain.trainers.registry import confs, load_trainer
from rtrain.trainers.xgboost.model_file import best_rounds

X, Y = np.arange(100.0).reshape(-1, 1), np.arange(100) % 2


def test_no_rounds_are_used_that_xgboost_does_not_have():
    booster = xgboost.train({"max_depth": 1, "nthread": 1}, xgboost.DMatrix(X, label=Y), num_boost_round=3)
    assert best_rounds(booster) == 0
    booster.set_attr(best_iteration="2")
    assert best_rounds(booster) == 3
    for best in ("-2", "3", "999999999999", "x", "²"):
        booster.set_attr(best_iteration=best)
        with pytest.raises(CheckpointError):
            best_rounds(booster)


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\0", "\x9b"])
def test_lightgbm_shows_no_control_characters_of_another_account(tmp_path, character, capfd):
    data = lightgbm.Dataset(X, Y, params={"verbosity": -1})
    text = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, num_boost_round=2).model_to_string()
    (tmp_path / MODEL).write_text(text)
    assert read_trees(tmp_path, trusted=False).num_trees() == 2
    assert "objective=regression" in text
    (tmp_path / MODEL).write_text(text.replace("objective=regression", f"objective={character}evil"))
    with pytest.raises(CheckpointError):
        read_trees(tmp_path, trusted=False)
    assert capfd.readouterr() == ("", "")


FAR = {"xgboost": ("model.ubj", rb"(?<=left_children\[\$l#L.{8})....", b"\0\0\x99\x99")}
FAR["lightgbm"] = (MODEL, rb"left_child=-?\d", b"left_child=9")


@pytest.mark.parametrize("trainer", FAR)
def test_nothing_is_predicted_with_nodes_that_do_not_exist_nor_built_on_them(tmp_path, trainer):
    dataset, (name, pattern, far) = boosting_runs.real_dataset("breast_cancer"), FAR[trainer]
    boosting_runs.fit(trainer, tmp_path, dataset, num_boost_round=2)
    trained = replace(newest(tmp_path, confs()[trainer](), dataset), own_files=False)
    rows, load = dataset.splits["test"].columns["x"], load_trainer(trainer).load_predictor
    expected = load(replace(trained, own_files=True), "cpu").predict(rows)
    np.testing.assert_array_equal(load(trained, "cpu").predict(rows), expected)
    whole = (trained.folder / name).read_bytes()
    (trained.folder / name).write_bytes(re.sub(pattern, lambda _: far, whole, count=1, flags=re.DOTALL))
    assert len((trained.folder / name).read_bytes()) == len(whole)
    with pytest.raises(CheckpointError, match=f"{name} was written by another account"):
        load(trained, "cpu")
    with pytest.raises(CheckpointError, match=f"{name} was written by another account"):
        boosting_runs.fit(trainer, tmp_path, dataset, num_boost_round=3)
    with pytest.raises(CheckpointError, match=f"{name} was written by another account"):
        boosting_runs.fit(trainer, tmp_path / "other", dataset, num_boost_round=3, init_from=trained.folder)
