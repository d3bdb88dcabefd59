"""``ray.train.get_context()`` without a cluster."""

from __future__ import annotations

from pathlib import Path

from ray.train.v2._internal.execution.storage import StorageContext
from ray.train.v2.api.context import LocalTrainContext

from rtrain.runs.checkpoints import checkpoints_dir


class LocalContext(LocalTrainContext):
    """The context of the only worker, which knows where the run's checkpoints are as those of Ray's workers do."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(experiment_name=checkpoints_dir(run_dir).name)
        self._run_dir = run_dir

    def get_storage(self) -> StorageContext:
        """Return the storage of the run's checkpoints."""
        return StorageContext(self._run_dir.absolute(), checkpoints_dir(self._run_dir).name, read_only=True)
