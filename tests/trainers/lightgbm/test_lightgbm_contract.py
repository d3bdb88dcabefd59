"""The lightgbm trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestLightGBM(TrainerContract):
    config = "lightgbm"
    overrides = ("trainer.num_boost_round=5", "trainer.params.num_leaves=7", "trainer.num_threads=1")
    trainer = "lightgbm"
    framework = "lightgbm"
    # Several workers estimate the rows of a leaf by second derivatives, so that the fewest of them mean something else.
    same_on_two = ("+trainer.params.min_data_in_leaf=1",)
    tolerance = 0.01
