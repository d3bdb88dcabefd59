"""The torch trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestTorch(TrainerContract):
    config = "mlp"
    overrides = (
        "trainer.max_epochs=2",
        "trainer.batch_size=null",
        "trainer.global_batch_size=64",
        "trainer.num_threads=1",
    )
    trainer = "torch"
    framework = "torch"
