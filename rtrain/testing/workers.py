"""A worker without a run around it, for tests of train loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from rtrain.config.run_conf import BestConf, CheckpointConf, RunConf
from rtrain.config.schema import RtrainConf
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset
from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint
from rtrain.runs.events import Event
from rtrain.runs.manifest import Manifest
from rtrain.runs.records import CheckpointRecord, EndRecord, ModelRecord, NoticeRecord, RunRecord, WorkerRecord
from rtrain.runs.status import Status
from rtrain.trainers.base import Job
from rtrain.trainers.checkpoint_writer import CheckpointWriter
from rtrain.trainers.trained import CheckpointMetadata, LoadedCheckpoint
from rtrain.trainers.worker import Worker

R = TypeVar("R", bound=RunRecord)


class RecordingChannel:
    """Keeps what a worker sends, and asks it to stop.

    Args:
        stop_after: How often the worker may ask whether to stop before the answer is yes; None: never.
        reason: Why it is to stop.
    """

    def __init__(self, stop_after: int | None = None, reason: str = Status.INTERRUPTED) -> None:
        self.records: list[RunRecord] = []
        self.asked = 0
        self.stop_after, self._reason = stop_after, reason

    def send(self, record: RunRecord) -> None:
        """Keep the record."""
        self.records.append(record)

    @property
    def save_requested(self) -> str | None:
        """Nothing."""
        return None

    @property
    def stop_reason(self) -> str | None:
        """The reason, once the worker has asked often enough."""
        self.asked += 1
        return self._reason if self.stop_after is not None and self.asked > self.stop_after else None

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of one class, in order."""
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def events(self) -> list[Event]:
        """The reports of metrics, in order."""
        return self.of(Event)

    @property
    def metrics(self) -> dict[str, Any]:
        """The newest value of each metric."""
        return {name: value for event in self.events for name, value in event.metrics.items()}

    @property
    def checkpoints(self) -> list[dict[str, Any]]:
        """What the manifest lists of each checkpoint, in order."""
        return [dict(record.entry) for record in self.of(CheckpointRecord)]

    @property
    def notices(self) -> list[str]:
        """The lines that the user should read."""
        return [record.text for record in self.of(NoticeRecord)]

    @property
    def end_reasons(self) -> list[str]:
        """Why training ended, if it did so by itself."""
        return [record.reason for record in self.of(EndRecord)]

    @property
    def worker_facts(self) -> list[dict[str, Any]]:
        """The facts about the worker, in order."""
        return [dict(record.facts) for record in self.of(WorkerRecord)]

    @property
    def model_facts(self) -> list[dict[str, Any]]:
        """The facts about the model, in order."""
        return [dict(record.facts) for record in self.of(ModelRecord)]


def make_worker(
    folder: str | Path,
    conf: Any,
    dataset: Dataset | None,
    *,
    channel: Any = None,
    rank: int = 0,
    world_size: int = 1,
    **run: Any,
) -> Worker:
    """Return a worker whose run directory is ``folder``.

    Args:
        folder: Created if it does not exist; the worker resumes from its newest checkpoint.
        conf: The plugin's conf.
        dataset: What to train on.
        channel: A ``RecordingChannel``, say.
        rank: Number of the worker.
        world_size: Number of workers.
        run: Fields of ``RunConf``; ``checkpoint`` as a mapping. Checkpoints are written immediately by default.
    """
    checkpoints_dir(Path(folder)).mkdir(parents=True, exist_ok=True)
    channel = RecordingChannel() if channel is None else channel
    given = {"upload": "sync", **run.pop("checkpoint", {})}
    cadence = CheckpointConf(**{**given, "best": BestConf(**given.get("best", {}))})
    return Worker(
        rank=rank,
        world_size=world_size,
        local_rank=rank,
        num_threads=1,
        run_dir=Path(folder),
        conf=conf,
        run=RunConf(**{"name": "test", "checkpoint": cadence, **run}),
        dataset=dataset,
        channel=channel,
        checkpoints=CheckpointWriter(
            run_dir=Path(folder),
            rank=rank,
            in_thread=cadence.upload == "async",
            send=channel.send,
            about=CheckpointMetadata(trainer={}, dataset=None, info=None if dataset is None else dataset.info),
        ),
        resume_from=latest_checkpoint(Path(folder)),
        in_process=world_size == 1,
    )


def make_manifest(**facts: Any) -> Manifest:
    """Return the manifest of a run that was asked nothing, changed by ``facts``."""
    asked: dict[str, Any] = {"command": [], "config_file": None, "config_hash": "", "config": {}, "overrides": []}
    begun: dict[str, Any] = {"run_id": "a", "run_name": "a", "seed": 0, "versions": {}, "git": None, "host": {}}
    return Manifest(**{**asked, **begun, **facts})


def make_job(conf: RtrainConf, dataset: Dataset | None, trainer_name: str = "torch") -> Job:
    """Return the job that a plugin checks, for a project in the current folder."""
    about = CheckpointMetadata(trainer={}, dataset=None, info=None if dataset is None else dataset.info)
    return Job(conf=conf, trainer_name=trainer_name, dataset=dataset, builder=Builder(), project_root=".", about=about)


def newest(folder: str | Path, conf: Any, dataset: Dataset) -> LoadedCheckpoint:
    """Return the newest checkpoint below the run directory ``folder``, for ``load_predictor``."""
    checkpoint = latest_checkpoint(Path(folder))
    assert checkpoint is not None, f"there is no checkpoint below {folder}"
    return LoadedCheckpoint(folder=checkpoint, conf=conf, info=dataset.info)
