"""The contract of a trainer plugin."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rtrain.config.schema import RtrainConf
from rtrain.config.secrets.redact import Redactor
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset
from rtrain.trainers.checkpoint_writer import CheckpointWriter
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.trained import CheckpointMetadata, LoadedCheckpoint, OwnRows, Predictor
from rtrain.trainers.worker import Worker

if TYPE_CHECKING:
    from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction

TrainLoop = Callable[[Worker], None]
"""Trains on one worker until it is done or all ranks agree to stop; the same in a Ray worker and in the driver."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a plugin is asked to train: plain data, composed and checked."""

    conf: RtrainConf
    trainer_name: str
    """Name of the plugin: ``trainer.type`` of the config."""
    dataset: Dataset | None
    builder: Builder
    """Builds what the config names."""
    project_root: str
    """Folder whose modules the driver and the workers can import."""
    about: CheckpointMetadata
    """What each checkpoint will say of itself."""
    signing_key: str = field(default="", repr=False)
    """Signs the files of checkpoints."""
    strange: frozenset[str] = frozenset()
    """Names of checkpoints of the run whose files another account may have written, if they are not trusted."""
    directions: Directions = field(default_factory=Directions)
    """Which way the metrics of the trainer get better."""
    schedule: str | None = None
    """Key of what is as long as the whole run, as ``TrainerPlugin.schedule_key`` returns it."""
    typed: frozenset[str] = frozenset()
    """Keys that the command line sets to something, or that a sweep varies: one of them without effect is an error."""
    notices: tuple[str, ...] = ()
    """What the user should know before it starts: what the rows and the trainer say about the config."""
    redact: Redactor = field(default_factory=Redactor)
    """Takes the secrets of the config out of what user code prints and raises."""

    @property
    def data(self) -> Dataset:
        """The dataset, for what is only asked where the checks of the plugin have seen one."""
        assert self.dataset is not None, "checked by the plugin"
        return self.dataset

    def worker(self, *, resume_from: Path | None = None, **place: Any) -> Worker:
        """Return a worker of this job.

        Args:
            resume_from: The checkpoint to resume from, the same on every rank; None: training begins.
            place: The fields of ``Worker`` that depend on where it runs.
        """
        writer = CheckpointWriter(
            run_dir=place["run_dir"],
            rank=place["rank"],
            in_thread=self.conf.run.checkpoint.upload == "async",
            send=place["channel"].send,
            about=self.about,
            signing_key=self.signing_key,
        )
        of_job: dict[str, Any] = {
            "checkpoints": writer,
            "conf": self.conf.trainer,
            "run": self.conf.run,
            "dataset": self.dataset,
            "builder": self.builder,
            "redact": self.redact,
            "known_directions": self.directions,
            "schedule": self.schedule,
            "resume_from": resume_from,
            "resumes_own": resume_from is None or resume_from.name not in self.strange,
        }
        return Worker(**{**of_job, **place})


BASE = "trainer.model.pretrained"
"""Key of the pretrained model that the checkpoints of a plugin may lack: see ``TrainerPlugin.lacks_base``."""
NOT_BASE = "trainer.model.config"
"""Key of a model that is not pretrained."""
LENGTHS = ("max_epochs", "max_steps", "num_boost_round")
"""Keys of a trainer that say how long a run is: to reach one is its usual end."""
SCHEDULE_LENGTHS = ("T_max", "total_steps", "total_iters", "num_training_steps", "decay_steps", "transition_steps")
"""Arguments of schedules, of any framework, that ``auto`` makes as long as the run."""


class TrainerPlugin:
    """One framework. Importing the plugin imports neither Ray nor the framework; its methods do.

    Its package holds ``checks.check_conf``, ``loop.train`` and ``predictor.load_predictor``, unless it overrides the
    methods that call them.
    """

    Conf: ClassVar[type]
    """Dataclass of the keys of this plugin; each field's docstring is the user's documentation."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable for the plugin to work."""

    worker_modules: ClassVar[tuple[str, ...]] = ()
    """Modules of the loop and its first step, which workers import while the driver still reads the data. Their import
    must not reserve devices."""

    can_fork: ClassVar[bool] = True
    """A fork of a process that has imported ``worker_modules`` can train, so that ``rtrain up`` can keep it ready."""

    pickles: ClassVar[tuple[str, ...]] = ()
    """Files of a checkpoint that may be pickles. Of another account's, the plugin gets none of them unless the user
    trusts it; all its other files have to be read in ways that run nothing."""

    resumable: ClassVar[frozenset[str]] = frozenset(
        {
            *(*LENGTHS, "max_seconds"),
            *("early_stopping", "early_stopping_rounds", "early_stopping_min_delta"),
            *("batch_size", "global_batch_size", "eval_batch_size", "num_threads"),
            *("eval_every_epochs", "eval_every_steps", "evaluate_split", "eval_splits"),
        }
    )
    """Keys of ``Conf`` that may be changed when a run is taken up again; a checkpoint holds the rest."""

    backend: ClassVar[str] = "ray.train.backend.BackendConfig"
    """The ``ray.train`` backend config that joins the workers of this framework into one world."""
    reported: ClassVar[tuple[str, ...]] = ()
    """Files, as patterns, by which the checkpoint of a train loop is known to hold a model of this framework, the usual
    one of Ray's callback first: ``load_model`` in the package's ``reported.py`` gets the file."""

    watched: ClassVar[tuple[TrainingFunction, ...]] = ()
    """Functions of the framework that train: a train loop, of any trainer, whose workers call one fails unless they are
    joined."""

    hints: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Patterns of messages of the framework's errors, and what to try after them: ``{0}`` is the first group."""

    callback_packages: ClassVar[tuple[str, ...]] = ()
    """Packages whose callbacks this trainer calls, and no other one."""

    can_init: ClassVar[bool] = False
    """Whether training can begin with the weights of another run: ``run.init_from``."""

    takes_any_checkpoint: ClassVar[bool] = False
    """Whether ``run.init_from`` may be a checkpoint of any trainer: a loop of the user's decides what to do with it."""

    can_skip: ClassVar[bool] = False
    """Whether the loop can skip a step whose loss is not finite: ``run.failure.nan_loss: skip``."""

    takes_missing: ClassVar[bool] = False
    """Whether a feature may be NaN where a value is missing, as far as the plugin doesn't refuse it by itself."""

    takes_original_sizes: ClassVar[bool] = False
    """Whether images may differ in height and width, as far as the plugin doesn't refuse it by itself."""

    can_rejoin: ClassVar[bool] = True
    """Whether workers can train one run together after the other, as trials of a sweep do. TensorFlow can't change its
    threads, nor how its processes are connected, once it has begun.
    """

    def part(self, name: str) -> Any:
        """Return a module of the plugin's package, imported."""
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")

    def check(self, job: Job) -> None:
        """Find what is wrong before anything starts; may import the framework, must not start or write anything.

        Raises:
            ConfigError: A target can't be built with its arguments, or conf and dataset don't fit together.
        """
        self.part("checks").check_conf(job)

    def train_loop(self, conf: Any) -> TrainLoop:
        """Return the function that every worker runs; a module-level function, so that it can be sent by name."""
        train: TrainLoop = self.part("loop").train
        return train

    def backend_config(self, conf: Any) -> Any:
        """Return the backend config for a config: by default that of ``backend``, whatever the config says."""
        return made(self.backend)

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Return the model of a checkpoint, ready to predict.

        Args:
            trained: A complete checkpoint that this plugin wrote.
            device: Where to predict: ``cpu`` or ``cuda``.

        Raises:
            CheckpointError: The checkpoint doesn't hold what it should.
        """
        predictor: Predictor = self.part("predictor").load_predictor(trained, device)
        return predictor

    def lacks_base(self, checkpoint: Path) -> bool:
        """Return whether a checkpoint lacks the pretrained model that it builds on: that of the key ``BASE``.

        Whoever loads such a checkpoint may name another place where that model is now; the plugin compares its weights.

        Args:
            checkpoint: Its folder, which this plugin wrote.
        """
        return False

    def brings_rows(self, conf: Mapping[str, Any]) -> bool:
        """Return whether a config without ``dataset`` has rows to evaluate on in its section ``trainer``, ``conf``."""
        return False

    def load_own_rows(self, trained: LoadedCheckpoint, device: str) -> OwnRows:
        """Return the model of a checkpoint together with the rows that its config brings, if it ``brings_rows``."""
        raise NotImplementedError

    def try_out(self, job: Job) -> None:
        """Build what training builds and run it on the first rows, before a run directory exists.

        It runs on the CPU of the driver, whose state it leaves as it was. Where a failure may be the driver's alone,
        the workers decide.

        Args:
            job: It has passed ``check``.

        Raises:
            RtrainError: A part of the config fails; names its key.
        """

    def decides_first_step(self, conf: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what of a config decides whether ``try_out`` succeeds once ``check`` has.

        Trials of a sweep that differ in nothing of it are tried once.

        Args:
            conf: The section ``trainer`` of a config.
        """
        return conf

    def directions(self, conf: Any, builder: Builder) -> Directions:
        """Return which way the metrics get better that the trainer's own library, or the config, brings.

        Names that every trainer shares (loss, accuracy) are known without. Where a metric is not known, the user has to
        say it: nothing is guessed.

        Args:
            conf: The plugin's conf; what it names has not been checked.
            builder: Builds what the config names.
        """
        return Directions()

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics that a run may report, the one that decides the best checkpoint first.

        Args:
            job: What is to be trained, checked.

        Returns:
            Their names, e.g. ``val/loss``; None where only the run itself knows them: a loop of the user's, say.
        """
        return None

    def notices(self, job: Job) -> Sequence[str]:
        """Return what the user should know of a new run before it starts, a line each.

        Args:
            job: What is to be trained, checked.
        """
        return ()

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Check that training can start with the weights of another run, if the plugin ``can_init``.

        Args:
            job: What is to be trained; ``run.init_from`` is a checkpoint that this plugin wrote.
            wrote: The metadata of that checkpoint.

        Raises:
            ConfigError: The weights don't fit what is to be trained.
        """

    def schedule_key(self, conf: Mapping[str, Any]) -> str | None:
        """Return the key of what is as long as the whole run, or None: with such a schedule a run can't be extended.

        What it did to the steps that are done depends on the length that the run was to have.

        Args:
            conf: The section ``trainer`` of a config.
        """
        return _auto_length(conf, "trainer")

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Return the keys of ``Conf``, e.g. ``optimizer.lr``, whose values may change when training resumes.

        In population based training, a trial resumes from a copy of another trial's checkpoint. Where the values that
        the checkpoint was written with differ from the config, training uses those of the config. A key includes all
        keys below it.

        Args:
            conf: The section ``trainer`` of a config.
        """
        return frozenset()

    def worker_env(self, conf: Any) -> dict[str, str]:
        """Return environment variables that Ray workers need before they import the framework."""
        return {}

    def world(self) -> LoopWorld:
        """Return what a train loop of the user's finds set up, if ``Conf`` is a ``TrainLoopConf``."""
        world: LoopWorld = self.part("world").World()
        return world

    def takes_ray_datasets(self, conf: Any) -> bool:
        """Return whether the loop reads its data with ``ray.train.get_dataset_shard`` instead of ``worker.dataset``."""
        return False

    def datasets_to_split(self, conf: Any, dataset: Dataset) -> Sequence[str]:
        """Return the splits whose rows the workers share, where Ray Data hands them out; of others each has all."""
        return list(dataset.splits)


def made(path: str) -> Any:
    """Return what a class makes that is named by its dotted path; its module is imported."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)()


def _auto_length(value: Any, where: str) -> str | None:
    """Return the first key at any depth that ``auto`` makes as long as the run."""
    if isinstance(value, Mapping):
        inner = [(f"{where}.{key}", one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        inner = [(f"{where}[{place}]", one) for place, one in enumerate(value)]
    else:
        return where if value == "auto" and where.rpartition(".")[2] in SCHEDULE_LENGTHS else None
    return next((found for place, one in inner if (found := _auto_length(one, place)) is not None), None)
