"""Train with JAX: the declared loop, or a function of the user's, in one world of processes."""

from __future__ import annotations

from rtrain.trainers.jax.learner import JaxLearner
from rtrain.trainers.jax.ranks import process_group
from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    with process_group(worker) as ranks:
        EpochLoop(worker, worker.conf, JaxLearner(worker, ranks), ranks).run()


def call_function(worker: Worker) -> None:
    """Call the user's function with this worker."""
    with process_group(worker):
        worker.builder.locate(worker.conf.train_function, "trainer.train_function")(worker)
