"""The jax plugin as the driver sees it; JAX itself is imported only by its methods."""

from __future__ import annotations

from typing import Any

from rtrain.trainers.base import Job, TrainLoop
from rtrain.trainers.jax import config, world
from rtrain.trainers.loops.epochs.plugin import EpochsPlugin


class Plugin(EpochsPlugin):
    """JAX: a Flax module with Optax, or a train function of your own, in one world of processes."""

    Conf = config.Conf
    requires = ("jax", "flax", "optax")
    worker_modules = ("rtrain.trainers.jax.loop",)
    backend = "rtrain.trainers.loops.rendezvous.RendezvousConfig"
    """The workers get each other's addresses; Ray's own backend leaves CPU workers alone, each with a copy."""
    can_fork = False
    watched = world.WATCHED

    def own_function(self, conf: config.Conf) -> Any:
        """Return the user's train function."""
        return conf.train_function

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
