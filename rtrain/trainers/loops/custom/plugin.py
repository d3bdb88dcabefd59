"""A custom train loop, as the driver sees it: what any framework's trainer does with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rtrain.datasets.base import Dataset
from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop, made
from rtrain.trainers.loops.custom.conf import OF_LOOPS
from rtrain.trainers.loops.custom.world import Frameworks
from rtrain.trainers.trained import LoadedCheckpoint, Predictor

LOOP_MODULE = "rtrain.trainers.loops.custom.loop"
"""What calls the user's loop."""


class TrainLoopPlugin(TrainerPlugin):
    """The trainer of a framework, training by a loop of the user's.

    Args:
        framework: Its ``world`` sets up what the loop finds.
        frameworks: Returns all plugins by name, that of the framework first: a loop may train with any of them,
            and its checkpoint hold a model of any.
    """

    resumable = frozenset({*OF_LOOPS, "max_seconds", "max_steps"})
    can_init = True
    takes_any_checkpoint = True

    def __init__(self, framework: TrainerPlugin, frameworks: Frameworks) -> None:
        self._framework, self._frameworks = framework, frameworks

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]  # of a class it is known as well
        """Whether the loop is one for trees."""
        return self._framework.takes_missing

    @property
    def worker_modules(self) -> tuple[str, ...]:  # type: ignore[override]  # as above
        """What a declared model of the framework needs, and what calls the loop."""
        return (*self._framework.worker_modules, LOOP_MODULE)

    def check(self, job: Job) -> None:
        """Check that the loop is there and can be called."""
        from rtrain.trainers.loops.custom.checks import check_custom

        world = self._framework.world()
        world.check(job)
        with world.importing():
            check_custom(job)

    def notices(self, job: Job) -> Sequence[str]:
        """Report a config that the loop does not take."""
        from rtrain.trainers.loops.custom.checks import config_not_taken

        with self._framework.world().importing():
            return config_not_taken(job)

    def train_loop(self, conf: Any) -> TrainLoop:
        """Return what runs the user's loop."""
        from rtrain.trainers.loops.custom.loop import train_custom

        world = self._framework.world()
        return partial(
            train_custom,
            path=conf.train_loop,
            config=conf.train_loop_config,
            arguments=conf.arguments,
            world=world,
            frameworks=self._frameworks,
        )

    def backend_config(self, conf: Any) -> Any:
        """Join the workers as Ray's trainer of the framework does."""
        own = self._framework.world().backend
        return self._framework.backend_config(conf) if own is None else made(own)

    def worker_env(self, conf: Any) -> dict[str, str]:
        """Return what the framework's world needs to be set before it is imported."""
        return self._framework.world().variables()

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let the loop's config change: the loop is called again with the other trial's checkpoint."""
        return frozenset({"train_loop_config"})

    def takes_ray_datasets(self, conf: Any) -> bool:
        """Give the loop its data the way Ray's docs do."""
        return True

    def datasets_to_split(self, conf: Any, dataset: Dataset) -> Sequence[str]:
        """Return the splits whose rows the workers share."""
        from rtrain.trainers.loops.custom.shards.names import shared_splits

        return shared_splits(dataset, conf.datasets_to_split)

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Return what ``trainer.predictor`` makes of a checkpoint, or the model that is known by its file.

        Raises:
            CheckpointError: Nothing says how to predict.
        """
        from rtrain.trainers.loops.custom.predictors.predictor import load_predictor

        return load_predictor(trained, self._frameworks, device)
