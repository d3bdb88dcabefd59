"""The sklearn trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestSklearn(TrainerContract):
    config = "sklearn"
    overrides = ("trainer.estimator.n_estimators=10",)
    trainer = "sklearn"
    framework = "sklearn"
