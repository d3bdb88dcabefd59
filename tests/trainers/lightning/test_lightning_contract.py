"""The lightning trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestLightning(TrainerContract):
    config = "lightning"
    overrides = ("trainer.max_epochs=2", "trainer.num_threads=1")
    trainer = "lightning"
    framework = "lightning"
