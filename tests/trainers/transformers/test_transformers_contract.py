"""The transformers trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestTransformers(TrainerContract):
    config = "transformers"
    overrides = (
        "dataset.limit=400",
        "trainer.max_epochs=2",
        "trainer.model.config.hidden_size=16",
        "trainer.model.config.intermediate_size=32",
        "trainer.num_threads=1",
    )
    trainer = "transformers"
    framework = "transformers"
