"""Ray Train's trainer, without the processes that a cluster of rtrain's own has no use for.

On a joined cluster Ray's trainer is used as it is. On our own, which is gone after the run, three things are left out
that take seconds at every start (measured on 2 cores): the placement-group cleaner and the autoscaling coordinator (an
actor each), and a runtime environment for the controller, which would keep it from using a process that is there.
"""

from __future__ import annotations

import os
from typing import Any

import ray
from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2._internal.execution.controller import TrainController
from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

CONTROLLER_SETTINGS = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1",  # each report of a custom loop waits for one such interval
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a local machine is not drained
    "RAY_TRAIN_ENABLE_CONTROLLER_STRUCTURED_LOGGING": "0",
}


class _LocalScalingPolicy(FixedScalingPolicy):
    """A fixed number of workers on a cluster that can't grow, so that no autoscaler has to hear of it."""

    def after_controller_start(self, train_run_context: Any) -> None:
        """Request nothing."""

    def _maybe_send_resource_request(self) -> None:
        """Request nothing."""


class _LocalController(TrainController):
    """Ray's controller; reads its settings while it is made, and does not pass them to the workers' environment."""

    def __init__(self, settings: dict[str, str], **parts: Any) -> None:
        added = {name: value for name, value in settings.items() if name not in os.environ}
        os.environ.update(added)
        try:
            super().__init__(**parts)
        finally:
            for name in added:
                del os.environ[name]


class LocalClusterTrainer(DataParallelTrainer):
    """Trains on a cluster that rtrain started for this run."""

    def __init__(self, *args: Any, start_timeout_seconds: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._start_timeout_seconds = start_timeout_seconds

    def _create_default_callbacks(self) -> list[Any]:
        needless: tuple[type, ...] = (PlacementGroupCleanerCallback,)
        if not self.datasets:
            needless = (*needless, DatasetsCallback)
        return [callback for callback in super()._create_default_callbacks() if not isinstance(callback, needless)]

    def _initialize_and_run_controller(self, **parts: Any) -> Any:
        settings = {**CONTROLLER_SETTINGS, "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(self._start_timeout_seconds)}
        parts["scaling_policy"] = _LocalScalingPolicy(self.scaling_config)
        controller = ray.remote(num_cpus=0)(_LocalController).remote(settings=settings, **parts)
        ray.get(controller.run.remote())
        return ray.get(controller.get_result.remote())
