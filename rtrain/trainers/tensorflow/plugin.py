"""The tensorflow plugin as the driver sees it; TensorFlow itself is imported only by its methods."""

from __future__ import annotations

from typing import Any

from rtrain.config.targets.builder import Builder
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.world import LoopWorld
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.loops.epochs.plugin import EpochsPlugin
from rtrain.trainers.tensorflow import config, environment, world


class Plugin(EpochsPlugin):
    """TensorFlow: a Keras 3 model, optimizer, loss and callbacks by _target_, on any number of workers."""

    Conf = config.Conf
    requires = ("tensorflow", "keras")
    worker_modules = ("rtrain.trainers.tensorflow.loop",)
    backend = "rtrain.trainers.loops.rendezvous.RendezvousConfig"
    """The workers get each other's addresses; Ray's own backend would turn Keras 3 into Keras 2."""
    can_fork = False
    reported = ("model.keras", "*.keras")
    watched = world.WATCHED
    callback_packages = ("keras",)
    can_rejoin = False

    def part(self, name: str) -> Any:
        """Return a module of this package; Keras asks for its backend when it is imported first."""
        environment.prepare_import()
        return super().part(name)

    def try_out(self, job: Job) -> None:
        """Build everything, and call model, loss and metrics; no step is compiled."""
        self.part("learner").try_learner(job)

    def directions(self, conf: config.Conf, builder: Builder) -> Directions:
        """Return which way the config's metrics get better, as Keras says it."""
        found: Directions = self.part("metrics").directions(conf.metrics, builder) if conf.metrics else Directions()
        return found

    def worker_env(self, conf: config.Conf) -> dict[str, str]:
        """Choose the backend of Keras, and keep TensorFlow's log quiet."""
        return environment.variables()

    def world(self) -> LoopWorld:
        """Return what a train loop finds; it chooses the Keras that is imported."""
        from rtrain.trainers.tensorflow.world import World

        return World()
