"""A train loop of the user's own, as the driver sees it: what any framework's trainer does with one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rtrain.errors import CheckpointError
from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.trained import LoadedCheckpoint, Predictor


class TrainLoopPlugin(TrainerPlugin):
    """The trainer of a framework, training by a loop of the user's.

    Args:
        framework: Its ``world`` sets up what the loop finds.
    """

    resumable = frozenset({"train_loop_config", "max_seconds", "max_steps"})  # the loop decides what to make of it

    def __init__(self, framework: TrainerPlugin) -> None:
        self._framework = framework

    def check(self, job: Job) -> None:
        """Check that the loop is there and can be called."""
        from rtrain.trainers.loops.custom.loop import check_custom

        self._framework.world().check(job)
        check_custom(job)

    def train_loop(self, conf: Any) -> TrainLoop:
        """Return what runs the user's loop."""
        from rtrain.trainers.loops.custom.loop import train_custom

        world = self._framework.world()
        return partial(train_custom, path=conf.train_loop, config=conf.train_loop_config, world=world)

    def backend_config(self, conf: Any) -> Any:
        """Join the workers as Ray's trainer of the framework does."""
        return self._framework.world().backend_config() or self._framework.backend_config(conf)

    def worker_env(self, conf: Any) -> dict[str, str]:
        """Return what the framework's world needs to be set before it is imported."""
        return self._framework.world().variables()

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let the loop's config change: it is called anew, with the other trial's checkpoint."""
        return frozenset({"train_loop_config"})

    def takes_ray_datasets(self, conf: Any) -> bool:
        """Give the loop its data the way Ray's docs do."""
        return True

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Refuse: only the loop knows what its checkpoints hold.

        Raises:
            CheckpointError: Always.
        """
        raise CheckpointError(
            f"{trained.folder} was written by {trained.conf.train_loop}, a loop of your own; only it knows how to "
            "predict."
        )
