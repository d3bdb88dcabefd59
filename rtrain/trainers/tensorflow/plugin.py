"""The tensorflow plugin as the driver sees it; TensorFlow itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.tensorflow import config, environment
from rtrain.trainers.trained import LoadedCheckpoint, Predictor


class Plugin(TrainerPlugin):
    """TensorFlow: a Keras 3 model, optimizer, loss and callbacks by _target_, on any number of workers."""

    Conf = config.Conf
    requires = ("tensorflow", "keras")
    can_init = True
    can_skip = True
    can_rejoin = False

    def check(self, job: Job) -> None:
        """Check every target's arguments against its signature, and conf against dataset."""
        environment.prepare_import()
        from rtrain.trainers.tensorflow.checks import check_conf

        check_conf(job)

    def try_out(self, job: Job) -> None:
        """Build everything, and call model, loss and metrics; no step is compiled."""
        from rtrain.trainers.tensorflow.learner import try_learner

        try_learner(job)

    def directions(self, conf: config.Conf, allow: Sequence[str]) -> Directions:
        """Return which way the config's metrics get better, as Keras says it."""
        if not conf.metrics:
            return Directions()
        environment.prepare_import()
        from rtrain.trainers.tensorflow.metrics import directions

        return directions(conf.metrics, allow)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs, and those of the config."""
        from rtrain.trainers.loops.auto import dataset_of, reported_metrics

        conf: config.Conf = job.conf.trainer
        return reported_metrics(conf.evaluate_split, dataset_of(job), tuple(conf.metrics))

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.optimistic import chosen_on_test

        return chosen_on_test(job, job.conf.trainer)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the declared loop."""
        environment.prepare_import()
        from rtrain.trainers.tensorflow.loop import train

        return train

    def backend_config(self, conf: config.Conf) -> Any:
        """Give the workers each other's addresses; Ray's own backend would turn Keras 3 into Keras 2."""
        from rtrain.trainers.loops.rendezvous import RendezvousConfig

        return RendezvousConfig()

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Build the declared model with the weights of the checkpoint."""
        environment.prepare_import()
        from rtrain.trainers.tensorflow.predictor import load_predictor

        return load_predictor(trained, device)

    def worker_env(self, conf: config.Conf) -> dict[str, str]:
        """Choose the backend of Keras, and keep TensorFlow's log quiet."""
        return dict(environment.VARIABLES)
