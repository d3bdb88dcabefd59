"""Run a user's Ray Train loop, ``train_loop_per_worker(config)``, unchanged; its reports reach the run directory."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

from ray.train import Checkpoint
from ray.train.v2._internal.execution.train_fn_utils import (
    DistributedTrainFnUtils,
    LocalTrainFnUtils,
    set_train_fn_utils,
)

from rtrain.config.targets import locate, locate_function
from rtrain.datasets.base import Pass, Split
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import adopt_checkpoint, checkpoints_dir, latest_checkpoint, read_record
from rtrain.trainers.monitor import Goals, Monitor
from rtrain.trainers.stopping import SIGNALS
from rtrain.trainers.worker import Worker


class StopTraining(BaseException):
    """Leaves the user's loop at a report, where all workers are at the same point; no ``except Exception`` holds it."""


def train_custom(worker: Worker, path: str, config: Mapping[str, Any]) -> None:
    """Call the function ``path`` (``module:function``) on this worker, with ``config`` if it takes an argument.

    ``ray.train.report``, ``get_checkpoint``, ``get_context`` and ``prepare_model`` work as under Ray Train, also
    without a cluster. When the run is to stop, the loop ends at its next report.
    """
    function = locate(path, "trainer.train_loop", worker.allow)
    if worker.in_process:
        set_train_fn_utils(_LocalReports(worker))
    else:
        set_train_fn_utils(_RayReports(worker))
    try:
        function(dict(config)) if takes_config(function) else function()
    except StopTraining:
        return


def check_custom(path: str, allow: Sequence[str]) -> None:
    """Find out before anything starts whether ``path`` is a function that a worker can call.

    Raises:
        ConfigError: It can't be imported, or takes more than one argument.
    """
    takes_config(locate_function(path, "trainer.train_loop", allow))


def takes_config(function: Any) -> bool:
    """Tell whether a train loop takes a config, as Ray Train decides it.

    Raises:
        ConfigError: It needs more than one argument.
    """
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    needed = sum(one.kind in kinds and one.default is one.empty for one in parameters)
    if needed > 1:
        name = getattr(function, "__name__", str(function))
        raise ConfigError(
            f"trainer.train_loop: {name} needs {needed} arguments; a train loop takes none, or one config."
        )
    return needed == 1


class _Reports:
    """Turns what a loop reports into events and listed checkpoints."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        newest = worker.resume_dir()
        # After a failure, reports are counted on from the checkpoint that the loop starts from.
        self.number = 0 if newest is None else int(read_record(newest)["step"])
        self.monitor, self.goals = Monitor.of(worker.run.checkpoint.best), Goals(worker.run.stop)

    def next_name(self, wanted: str | None) -> str:
        """Count one more report and return the name of its checkpoint.

        Raises:
            TrainingError: The wanted name would lead to another place than the run's checkpoints.
        """
        self.number += 1
        if wanted and (wanted != Path(wanted).name or wanted.startswith(".")):
            raise TrainingError(f"checkpoint_dir_name={wanted!r} is no plain name of a folder.")
        return wanted or f"report-{self.number:06d}"

    def reason(self, metrics: Mapping[str, Any]) -> str:
        """Return why training should end at a report of these metrics, or an empty string."""
        return self.worker.stop_reason or self.goals.reached(_numbers(metrics))

    def record(self, metrics: Mapping[str, Any], folder: Path | None) -> None:
        """Send one report of rank 0; ``folder`` is the checkpoint, complete and in its place."""
        plain = _numbers(metrics)
        step, epoch = int(plain.get("step", self.number)), int(plain.get("epoch", self.number))
        self.worker.report(plain, step=step, epoch=epoch)
        if folder is not None and self.worker.rank == 0:
            facts = {"step": self.number, "epoch": epoch, "metrics": plain, "score": self.monitor.score(plain)}
            self.worker.list_checkpoint(adopt_checkpoint(folder, facts))

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint of this run."""
        newest = latest_checkpoint(self.worker.run_dir)
        return None if newest is None else Checkpoint(str(newest))

    def leave(self, reason: str) -> None:
        """Leave the user's loop if there is a reason."""
        if not reason:
            return
        if reason not in SIGNALS:
            self.worker.describe_end(reason)
        raise StopTraining


class _RayReports(DistributedTrainFnUtils):
    """Ray's own functions on a worker; each report is recorded once Ray has taken it."""

    def __init__(self, worker: Worker) -> None:
        self._reports = _Reports(worker)

    def report(
        self,
        metrics: dict[str, Any],
        checkpoint: Checkpoint | None = None,
        checkpoint_dir_name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Report to Ray, then to the run directory; ends the loop here if the run is to stop."""
        name = self._reports.next_name(checkpoint_dir_name)
        super().report(metrics, checkpoint, name, *args, **kwargs)
        # All ranks meet here, so that the checkpoint is complete, and all of them stop or none.
        reason = self.broadcast_from_rank_zero(self._reports.reason(metrics))
        folder = checkpoints_dir(self._reports.worker.run_dir) / name
        self._reports.record(metrics, folder if folder.exists() else None)
        self._reports.leave(reason)

    def get_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint of this run: Ray itself knows those of this driver only."""
        return self._reports.newest()


class _LocalReports(LocalTrainFnUtils):
    """The same without a cluster: one worker, in this process."""

    def __init__(self, worker: Worker) -> None:
        splits = {} if worker.dataset is None else worker.dataset.splits
        shards = {name: _LocalShard(split, worker.run.seed) for name, split in splits.items()}
        super().__init__(experiment_name=worker.run_dir.name, dataset_shards=shards)
        self._reports = _Reports(worker)

    def report(
        self,
        metrics: dict[str, Any],
        checkpoint: Checkpoint | None = None,
        checkpoint_dir_name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Record metrics, and keep a copy of the checkpoint."""
        name = self._reports.next_name(checkpoint_dir_name)
        folder = None
        if checkpoint is not None:
            folder = checkpoints_dir(self._reports.worker.run_dir) / name
            with checkpoint.as_directory() as source:
                shutil.copytree(source, folder)
        self._reports.record(metrics, folder)
        self._reports.leave(self._reports.reason(metrics))

    def get_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint of this run."""
        return self._reports.newest()


class _LocalShard:
    """What ``ray.train.get_dataset_shard`` returns without a cluster: a whole split, as columns ``x`` and ``y``."""

    def __init__(self, split: Split, seed: int) -> None:
        self._split, self._seed = split, seed

    def count(self) -> int:
        """Return the rows of the split."""
        return self._split.num_rows

    def iter_batches(self, *, batch_size: int = 256, **_: Any) -> Iterator[dict[str, Any]]:
        """Yield batches of NumPy arrays, in the split's order."""
        one = Pass(rank=0, world_size=1, global_batch_size=batch_size, seed=self._seed, shuffle=False)
        for batch in self._split.batches(one):
            yield {"x": batch.x, "y": batch.y}

    def iter_torch_batches(self, *, batch_size: int = 256, **_: Any) -> Iterator[dict[str, Any]]:
        """Yield batches of torch tensors, in the split's order."""
        import torch

        for batch in self.iter_batches(batch_size=batch_size):
            yield {name: torch.from_numpy(values) for name, values in batch.items()}


def custom_loop(path: str, config: Mapping[str, Any]) -> partial[None]:
    """Return the train loop that runs ``path``."""
    return partial(train_custom, path=path, config=config)


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return those of the metrics that are numbers."""
    return {name: float(value) for name, value in metrics.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (hasattr(value, "item") and getattr(value, "size", None) == 1)
