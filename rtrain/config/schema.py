"""What a config may say: the root and every part that no plugin owns. A field's docstring is the user's documentation.

Each dataclass serves twice: OmegaConf reads it as a structured config while Hydra composes, and pydantic checks ranges
and cross-field rules afterwards. Fields therefore use only types that both understand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rtrain.config.needs import LOOP, PROCESSES, SEVERAL_WORKERS, SMOKE, WORKERS, Need, Rules
from rtrain.config.value_types.num_workers import NUM_WORKERS_SCHEMA, Elastic, read_num_workers

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""What the name of a run or of a sweep looks like: it becomes a folder."""

RANGE = Need(
    met=lambda way: isinstance(way.conf.scaling.num_workers, Elastic),
    otherwise="the number of workers is fixed",
    instead="Give a range of workers: num_workers=[1,8]",
    keys=("scaling.num_workers",),
    portable=True,
)
PLACED = replace(SEVERAL_WORKERS, otherwise="a single worker has one place", portable=True)
OWN_CLUSTER = Need(
    met=lambda way: way.conf.cluster.address is None,
    otherwise="the cluster at cluster.address is running already",
    instead="Leave it out, or start a cluster of its own: cluster.address=null",
    keys=("cluster.address",),
    portable=True,
)
SKIPS = Need(
    met=lambda way: way.conf.run.failure.nan_loss == "skip" or getattr(way.trainer, "precision", None) == "fp16",
    otherwise="no step is left out",
    instead="Leave out steps whose loss is no number: run.failure.nan_loss=skip",
    keys=("run.failure.nan_loss", "trainer.precision"),
)
RESUMES = Need(
    met=lambda way: way.resumed or way.multirun or way.conf.run.resume != "never",
    otherwise="a new run is begun, which has no data to compare with",
    instead="Resume a run: run.resume=auto, or rtrain resume RUN",
    keys=("run.resume",),
    portable=True,
)
ALONE = Need(
    met=lambda way: way.conf.dataset is None,
    otherwise="it stands in place of dataset, which is given too",
    instead="Keep one of the two; without dataset: dataset=null",
    keys=("dataset",),
)
STORAGE = Need(
    met=lambda way: way.conf.run.storage is not None,
    otherwise="the run is copied nowhere",
    instead="Say where to: run.storage=s3://bucket/runs",
    keys=("run.storage",),
    portable=True,
)
TOLD = Need(
    met=lambda way: bool(way.conf.run.loggers or way.conf.run.callbacks),
    otherwise="there are no trackers and no callbacks to wait for",
    instead="Name one: run.loggers=[tensorboard]",
    keys=("run.loggers", "run.callbacks"),
)
LOGGERS = Need(
    met=lambda way: bool(way.conf.run.loggers),
    otherwise="the metrics go to no tracker",
    instead="Name one: run.loggers=[tensorboard]",
    keys=("run.loggers",),
)


class ChoiceError(ValueError):
    """A text is none of those that a key takes."""

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__(f"must be one of: {', '.join(choices)}")
        self.choices = tuple(choices)


def one_of(*choices: str) -> Any:
    """Return the annotations that restrict a ``str`` field to ``choices`` (OmegaConf 2.3 knows no ``Literal``)."""

    def check(value: str) -> str:
        if value not in choices:
            raise ChoiceError(choices)
        return value

    return AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(choices)})


def _folder(value: str) -> str:
    if "://" in value:
        raise ValueError("is a folder of this machine, not a URL; for a copy in an object store: run.storage")
    return value


def _store(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if not separator or not rest:
        raise ValueError("is a URL, such as s3://bucket/runs; a folder of the network is file:///mnt/runs")
    if scheme.lower() in ("http", "https"):
        raise ValueError("is the URL of an object store (s3, gs, az, abfs, file); nothing can be written to a web page")
    return value


@dataclass(kw_only=True)
class ScalingConf:
    """How many workers train, and what each of them gets."""

    scalar: ClassVar[str] = "num_workers"
    needs: ClassVar[Rules] = (
        WORKERS.of("cpus_per_worker", "resources_per_worker", "placement_strategy", "start_timeout_seconds"),
        PLACED.of("placement_strategy"),
        RANGE.of("resize_seconds"),
    )

    num_workers: Annotated[Any, BeforeValidator(read_num_workers), WithJsonSchema(NUM_WORKERS_SCHEMA)] = 1
    """Number of training processes. 0 trains inside this process, without Ray. ``{min: 1, max: 8}``, or ``[1, 8]``,
    takes as many as there is room for, and follows machines that come and go."""

    resize_seconds: Annotated[float, Field(gt=0)] = 30.0
    """With a range of workers, seconds between two looks whether there is room for more or fewer of them; when their
    number changes, they start again from a checkpoint that is written just before."""

    use_gpu: bool = False
    """Give each worker one GPU."""

    cpus_per_worker: Annotated[float, Field(gt=0)] = 1.0
    """Cores each worker reserves; on a cluster of rtrain's own, workers may share cores."""

    resources_per_worker: dict[str, float] = field(default_factory=dict)
    """More Ray resources each worker reserves, by Ray's names, e.g. ``{memory: 8e9}``; part of a GPU, with ``use_gpu``:
    ``{GPU: 0.5}``."""

    placement_strategy: Annotated[str, *one_of("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")] = "PACK"
    """How Ray places the workers on nodes."""

    start_timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    """Longest wait for the workers to start before the run fails with a message."""

    @property
    def min_workers(self) -> int:
        """The fewest workers that will do."""
        return self.num_workers.min if isinstance(self.num_workers, Elastic) else int(self.num_workers)


@dataclass(kw_only=True)
class BoundsConf:
    """Where a metric has to lie."""

    min: float | None = None
    """Least value that is good enough."""

    max: float | None = None
    """Greatest value that is good enough."""

    def __post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max, or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"has a min of {self.min:g} above its max of {self.max:g}")

    def hold(self, value: float) -> bool:
        """Return whether ``value`` lies within; NaN never does."""
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)


@dataclass(kw_only=True)
class BestConf:
    """Which checkpoints are the best, and how many of them stay."""

    monitor: str | None = None
    """Metric that decides, e.g. ``val/accuracy``; null: that of ``trainer.early_stopping``, else the trainer's own
    choice."""

    mode: Annotated[str, *one_of("auto", "min", "max")] = "auto"
    """Whether a smaller or a larger ``monitor`` is better; ``auto`` takes what is known of the metric, and refuses one
    of which nothing is."""

    keep: Annotated[int, Field(ge=1)] = 1
    """Number of best checkpoints that stay."""


@dataclass(kw_only=True)
class CheckpointConf:
    """When a checkpoint is written and which ones stay. The first of the three intervals that is over counts; an
    evaluation that is among the best so far is always saved."""

    every_epochs: Annotated[int, Field(ge=1)] | None = 1
    """Write one after each so many epochs; null for none by epoch. Rounds of boosted trees are no epochs."""

    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Write one after each so many optimizer steps, or rounds of boosted trees; null for none by step."""

    every_seconds: Annotated[float, Field(gt=0)] | None = 300.0
    """Write one when so many seconds have passed since the last one; null for none by time."""

    keep: Annotated[int, Field(ge=1)] = 2
    """Number of newest checkpoints that stay: should the last one be damaged, the one before it serves."""

    best: BestConf = field(default_factory=BestConf)

    upload: Annotated[str, *one_of("async", "sync")] = "async"
    """``async``: training goes on from a copy in memory while files are written; ``sync``: it waits for them. It never
    waits for ``run.storage``."""

    on_exit: bool = True
    """Write one when a signal (Ctrl-C, SIGTERM, SIGUSR1) ends the run."""


@dataclass(kw_only=True)
class StopConf:
    """What ends a run early, whatever the trainer. Metrics are looked at whenever they are reported."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    target: dict[str, float] = field(default_factory=dict)
    """Stop once a metric is as good as this, e.g. ``{val/accuracy: 0.99}``. A metric of which it isn't known which way
    is better is refused: ``bounds`` says it."""

    bounds: dict[str, BoundsConf] = field(default_factory=dict)
    """Stop once a metric leaves its bounds, e.g. ``{train/loss: {max: 100}}``."""


@dataclass(kw_only=True)
class FailureConf:
    """How many failures a run on Ray workers survives: it starts again from its last checkpoint. A mistake of the
    config or the data ends it at once, and so does the same exception twice without progress in between."""

    scalar: ClassVar[str] = "max_failures"
    needs: ClassVar[Rules] = (
        PROCESSES.of("max_failures"),
        WORKERS.of("max_preemption_failures", "backoff_seconds", "max_backoff_seconds", "wait_seconds", "hang_seconds"),
        SKIPS.of("max_skipped_steps"),
    )

    max_failures: Annotated[int, Field(ge=0)] = 5
    """Number of failures (workers that died, raised or hung, machines that were lost) after which it starts again."""

    max_preemption_failures: Annotated[int, Field(ge=0)] = 100
    """Number of machines taken away with notice (spot instances) after which it starts again."""

    backoff_seconds: Annotated[float, Field(ge=0)] = 1.0
    """Wait before it starts again after a failure without progress, about; twice as long after each further one."""

    max_backoff_seconds: Annotated[float, Field(ge=0)] = 60.0
    """Longest such wait."""

    hang_seconds: Annotated[float, Field(gt=0)] | None = 1800.0
    """Longest time in which no step is taken, once training has begun: then every worker writes the stack of its
    threads to ``logs/``, and the run starts again. null: wait forever. A train loop of one's own is not watched."""

    nan_loss: Annotated[str, *one_of("raise", "skip", "stop")] = "raise"
    """What a training loss does that is NaN or infinite: ``raise`` fails the run, ``stop`` ends it with the checkpoint
    before, ``skip`` leaves the step out and notes it. ``skip`` looks at the loss and the gradients of each step before
    it is taken. Weights that have become NaN or infinite are never saved."""

    max_skipped_steps: Annotated[int, Field(ge=1)] = 50
    """Number of steps in a row that ``nan_loss: skip``, or the loss scaling of fp16, may leave out before the run
    fails."""

    wait_seconds: Annotated[float, Field(ge=0)] = 600.0
    """Longest wait for machines to come back, or others in their place, when too few are left for the workers."""


@dataclass(kw_only=True)
class RunConf:
    """Where a run is recorded and what holds for it as a whole."""

    scalar: ClassVar[str] = "name"
    needs: ClassVar[Rules] = (
        STORAGE.of("storage_timeout_seconds"),
        TOLD.of("loggers_timeout_seconds"),
        LOGGERS.of("system_metrics_seconds"),
        RESUMES.of("resume_data"),
    )

    name: Annotated[str, Field(pattern=NAME, max_length=120)] = "${hydra:job.name}"
    """Folder below ``root_dir`` that collects the runs of this config; unless set, the config's file name, or of a
    config.yaml its folder's."""

    root_dir: Annotated[str, AfterValidator(_folder)] = "runs"
    """Folder that holds all runs. With workers on several machines, a folder that all of them reach."""

    storage: Annotated[str, AfterValidator(_store)] | None = None
    """URL that each run is copied to while it goes on, e.g. ``s3://bucket/runs`` (or ``gs://``, ``az://``, ``abfs://``,
    ``file:///mnt/runs``): below it are the same folders as below ``root_dir``. Null: nowhere."""

    storage_timeout_seconds: Annotated[float, Field(ge=0)] = 300.0
    """At the end of a run: how long ``storage`` may take nothing before the run ends without a whole copy."""

    private: bool = False
    """Let your account alone read the files of the run: modes 0600 and 0700, in Ray's session folder too."""

    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of weights, data order and everything else that is random."""

    log_every_steps: Annotated[int, Field(ge=1)] = 10
    """Optimizer steps between two lines of training metrics in ``events.jsonl``."""

    show_output: Annotated[str, *one_of("rank0", "all", "none")] = "rank0"
    """Whose output is shown while training: ``rank0``: what worker 0 prints; ``all``: of all workers, each line with
    its rank, and of the trials of a sweep; ``none``. All of it is in ``logs/worker-<rank>.log`` in any case."""

    resume: str = "never"
    """``never``: a new run; ``auto``: go on with the newest unfinished run of this config, if there is one; ``must``:
    fail if there is none; else the run directory to go on with."""

    resume_data: Annotated[str, *one_of("same", "changed")] = "same"
    """``changed``: resume a run although the content of its data differs. How rows are chosen, split and prepared may
    never change."""

    init_from: str | None = None
    """Checkpoint, or run, whose weights a new run begins with; its optimizer and progress are left behind."""

    loggers: dict[str, Any] | None = field(default_factory=dict)
    """Trackers that the metrics go to, each with keys of its own: ``{mlflow: {tracking_uri: http://host:5000}}``, or a
    list of names: ``[tensorboard, csv]``. Those that are typed come beside those of a file; ``run.loggers=null`` takes
    out all, ``run.loggers.csv=null`` one."""

    loggers_timeout_seconds: Annotated[float, Field(ge=0)] = 60.0
    """At the end of a run: how long a tracker may take nothing, or a callback not return, before the run ends without
    it."""

    callbacks: list[Any] = field(default_factory=list)
    """What is called on the driver when the run starts, reports, saves, fails and ends: each a subclass of
    ``rtrain.Callback``, by ``_target_``."""

    system_metrics_seconds: Annotated[float, Field(ge=0.1)] | None = 10.0
    """Interval in seconds at which TensorBoard and MLflow get how busy the driver's machine is (CPU, memory, GPUs);
    null: never. W&B measures by itself."""

    tags: list[str] = field(default_factory=list)
    """Words to find the run by, in trackers too."""

    notes: str | None = None
    """What you want to remember of the run; trackers show it."""

    stop: StopConf = field(default_factory=StopConf)
    checkpoint: CheckpointConf = field(default_factory=CheckpointConf)
    failure: FailureConf = field(default_factory=FailureConf)


@dataclass(kw_only=True)
class ClusterConf:
    """The Ray cluster to train on."""

    scalar: ClassVar[str] = "address"
    needs: ClassVar[Rules] = (WORKERS.of_all(), OWN_CLUSTER.of("object_store_bytes"))

    address: str | None = None
    """Address of a running cluster (``host:6379``, ``auto``); null: ``RAY_ADDRESS``, else one of rtrain's own."""

    start_timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Longest wait for the cluster to answer or start."""

    object_store_bytes: Annotated[int, Field(ge=80_000_000)] | None = None
    """Shared memory of a cluster of rtrain's own; null: by the size of the data."""

    runtime_env: dict[str, Any] = field(default_factory=dict)
    """Ray runtime environment of the workers, e.g. ``{env_vars: {NCCL_DEBUG: INFO}}``. A cluster of rtrain's own takes
    ``env_vars`` only. A file sets known settings; others have to be typed, or be in ``allow``."""


@dataclass(kw_only=True)
class SmokeConf:
    """How ``rtrain smoke`` trains this config within seconds, and what has to come of it. Other commands ignore it."""

    needs: ClassVar[Rules] = (SMOKE.of_all(),)

    overrides: list[str] = field(default_factory=list)
    """Overrides as on a command line, e.g. ``trainer.max_epochs=1``."""

    expect: dict[str, BoundsConf] = field(default_factory=dict)
    """Bounds by metric, e.g. ``test/accuracy: {min: 0.9}``; without any, the training only has to succeed."""


@dataclass(kw_only=True)
class RtrainConf:
    """The whole config. ``trainer`` and ``dataset`` are checked against the plugin that their ``type`` names."""

    needs: ClassVar[Rules] = (LOOP.of("datasets"), ALONE.of("datasets"))

    trainer: Any = "???"
    """What trains: ``type`` names the plugin, the other keys are the plugin's."""

    dataset: Any = None
    """What is trained on: ``type`` names the source, the other keys are the source's."""

    datasets: dict[str, Any] = field(default_factory=dict)
    """In place of ``dataset``, what ``trainer.train_loop`` is trained on: data sets by the names that
    ``ray.train.get_dataset_shard`` takes, ``{train: {type: csv, path: a.csv}}`` say. Each is read whole, with its own
    columns."""

    scaling: ScalingConf = field(default_factory=ScalingConf)
    run: RunConf = field(default_factory=RunConf)
    cluster: ClusterConf = field(default_factory=ClusterConf)

    allow: list[str] = field(default_factory=list)
    """Modules beyond the usual ones that a ``_target_`` may come from, e.g. ``my_pkg.*``; and keys that a file may set
    with it only: ``hydra.job.env_set.PATH``."""

    vars: dict[str, Any] = field(default_factory=dict)
    """Free values for interpolation, e.g. ``${vars.width}``."""

    sweep: Any = None
    """What ``--multirun`` varies and how: ``type`` names the search, the other keys are the search's."""

    smoke: SmokeConf = field(default_factory=SmokeConf)


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """The conf dataclasses of all plugins: config is below the plugins, so that these come in from above."""

    trainer: Mapping[str, type]
    dataset: Mapping[str, type]
    sweep: Mapping[str, type] = field(default_factory=dict)
    scheduler: Mapping[str, type] = field(default_factory=dict)
    logger: Mapping[str, type] = field(default_factory=dict)
    part: Mapping[str, type] = field(default_factory=dict)
    """Of the data sets in ``datasets``."""

    def group(self, name: str) -> Mapping[str, type]:
        """Return the plugins' dataclasses of a config group, by plugin name."""
        groups: dict[str, Mapping[str, type]] = {
            "trainer": self.trainer,
            "dataset": self.dataset,
            "sweep": self.sweep,
            "sweep/scheduler": self.scheduler,
            "datasets": self.part,
            "run/loggers": self.logger,
        }
        return groups[name]
