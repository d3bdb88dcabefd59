"""Files of trees that another account wrote: what XGBoost and LightGBM take on trust is looked at before."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import xgboost

from rtrain.errors import CheckpointError
from rtrain.trainers.lightgbm.loop import MODEL, read_trees
from rtrain.trainers.xgboost.loop import best_rounds

X, Y = np.arange(100.0).reshape(-1, 1), np.arange(100) % 2


def test_no_rounds_are_used_that_xgboost_does_not_have():
    booster = xgboost.train({"max_depth": 1, "nthread": 1}, xgboost.DMatrix(X, label=Y), num_boost_round=3)
    assert best_rounds(booster) == 0
    booster.set_attr(best_iteration="2")
    assert best_rounds(booster) == 3
    for best in ("-2", "3", "999999999999"):
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
