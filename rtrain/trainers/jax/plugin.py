"""The jax plugin as the driver sees it; JAX itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.jax import config
from rtrain.trainers.trained import LoadedCheckpoint, Predictor


class Plugin(TrainerPlugin):
    """JAX: a Flax module with Optax, or a train function of your own, in one world of processes."""

    Conf = config.Conf
    requires = ("jax", "flax", "optax")
    can_init = True
    can_skip = True

    def check(self, job: Job) -> None:
        """Check every target's arguments against its signature, and conf against dataset."""
        from rtrain.trainers.jax.checks import check_conf

        check_conf(job)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs, and those of the config; a function reports its own."""
        from rtrain.trainers.loops.auto import dataset_of, reported_metrics

        conf: config.Conf = job.conf.trainer
        if conf.train_function is not None:
            return None
        return reported_metrics(conf.evaluate_split, dataset_of(job), tuple(conf.metrics))

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.optimistic import chosen_on_test

        return chosen_on_test(job, job.conf.trainer) if job.conf.trainer.train_function is None else ()

    def try_out(self, job: Job) -> None:
        """Build everything, and trace model, loss and metrics, where training is to be in this process.

        Elsewhere the first worker does: the driver would take as long for it, and the memory of an accelerator.
        """
        if job.conf.trainer.train_function is None and job.conf.scaling.num_workers == 0:
            from rtrain.trainers.jax.learner import try_learner

            try_learner(job)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the declared loop, or the user's own."""
        from rtrain.trainers.jax.loop import call_function, train

        return train if conf.train_function is None else call_function

    def backend_config(self, conf: config.Conf) -> Any:
        """Give the workers each other's addresses; Ray's own backend leaves CPU workers alone, each with a copy."""
        from rtrain.trainers.loops.rendezvous import RendezvousConfig

        return RendezvousConfig()

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Build the declared model with the weights of the checkpoint."""
        from rtrain.trainers.jax.predictor import load_predictor

        return load_predictor(trained, device)
