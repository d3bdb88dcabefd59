"""The jax trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestJax(TrainerContract):
    config = "jax"
    overrides = ("trainer.max_epochs=2",)
    trainer = "jax"
    framework = "jax"
    same_on_two = ("trainer.model.dropout=0",)

    def test_two_workers_are_one_world(self, two):
        assert [worker["num_processes"] for worker in two.manifest.workers.values()] == [2, 2]
