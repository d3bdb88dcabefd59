"""The tensorflow trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestTensorflow(TrainerContract):
    config = "keras"
    overrides = ("trainer.max_epochs=2",)
    trainer = "tensorflow"
    framework = "tensorflow"
    same_on_two = ("trainer.model.dropout=0",)
