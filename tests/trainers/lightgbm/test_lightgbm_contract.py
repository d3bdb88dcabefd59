"""The lightgbm trainer keeps the contract of every trainer."""

import lightgbm

from rtrain.testing.trainer_contract import TrainerContract


class TestLightGBM(TrainerContract):
    config = "lightgbm"
    overrides = ("trainer.num_boost_round=5", "trainer.params.num_leaves=7", "trainer.num_threads=1")
    trainer = "lightgbm"
    framework = "lightgbm"
    tolerance = 0.1  # each of two workers finds the bins of half of the features, by its own rows

    def test_two_workers_have_trees_of_all_rows(self, two):
        model = lightgbm.Booster(model_file=two.best_checkpoint / "model.txt").dump_model()
        counts = {tree["tree_structure"]["internal_count"] for tree in model["tree_info"]}
        assert counts == {two.manifest.dataset["num_rows"]["train"]}
