"""The transformers trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestTransformers(TrainerContract):
    config = "transformers"
    overrides = ("trainer.max_epochs=1",)
    trainer = "transformers"
    framework = "transformers"
