"""The xgboost trainer keeps the contract of every trainer."""

import pytest
import xgboost

from rtrain.testing.trainer_contract import TrainerContract


class TestXGBoost(TrainerContract):
    config = "xgboost"
    overrides = ("trainer.num_boost_round=5", "trainer.params.max_depth=3", "trainer.num_threads=1")
    trainer = "xgboost"
    framework = "xgboost"
    takes_float64 = False

    def test_two_workers_have_trees_of_all_rows(self, run, two):
        """The cover of a root is the sum of the second derivatives of all rows that it has seen."""
        alone, shared = (
            xgboost.Booster(model_file=one.best_checkpoint / "model.ubj").trees_to_dataframe() for one in (run, two)
        )
        assert shared["Cover"][0] == pytest.approx(alone["Cover"][0], rel=1e-5)
