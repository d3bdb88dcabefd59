"""Ray Train's worker process as runs need it. Its controller imports it too, and nothing heavy with it."""

from __future__ import annotations

from ray.train.v2._internal.execution.worker_group import worker as ray_worker

from rtrain.process.interrupts import leave_signals_to_driver
from rtrain.process.variables import drop_arguments


class RayTrainWorker(ray_worker.RayTrainWorker):
    """Ray's actor that trains; signals that end the run don't end it before its last checkpoint."""

    def __init__(self) -> None:
        leave_signals_to_driver()
        drop_arguments()
        super().__init__()
