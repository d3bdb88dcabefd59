"""The jax trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestJax(TrainerContract):
    config = "jax"
    overrides = ("trainer.max_epochs=2",)
    trainer = "jax"
    framework = "jax"
