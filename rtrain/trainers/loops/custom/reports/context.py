"""``ray.train.get_context()``: Ray's own, but for the name of the run, and without a cluster."""

from __future__ import annotations

from pathlib import Path

from ray.train.v2._internal.execution.storage import StorageContext
from ray.train.v2.api.context import DistributedTrainContext, LocalTrainContext

from rtrain.runs.checkpoints import checkpoints_dir


def experiment_name(run_dir: Path) -> str:
    """Return the name of a run, which no other run has: Ray's callbacks name temporary folders by it."""
    return f"{run_dir.parent.name}-{run_dir.name}"


class WorkerContext(DistributedTrainContext):
    """The context of a Ray worker."""

    def __init__(self, run_dir: Path) -> None:
        self._name = experiment_name(run_dir)

    def get_experiment_name(self) -> str:
        """Return the name of the run; to Ray, it is the folder of its checkpoints."""
        return self._name


class LocalContext(LocalTrainContext):
    """The context of the only worker, which knows where the run's checkpoints are as those of Ray's workers do."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(experiment_name=experiment_name(run_dir))
        self._run_dir = run_dir

    def get_storage(self) -> StorageContext:
        """Return the storage of the run's checkpoints."""
        return StorageContext(self._run_dir.absolute(), checkpoints_dir(self._run_dir).name, read_only=True)
