"""The section ``run``: where a run is recorded, when it saves and stops, which failures it retries, and its loggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from rtrain.config.needs import PROCESSES, WORKERS, Need, Rules
from rtrain.config.value_types.names import MAX_NAME, NAME
from rtrain.config.value_types.texts import folder, one_of, store

SKIPS = Need(
    met=lambda way: way.conf.run.failure.nan_loss == "skip" or getattr(way.trainer, "precision", None) == "fp16",
    otherwise="no step is skipped",
    instead="Skip steps whose loss is not a number: run.failure.nan_loss=skip",
    keys=("run.failure.nan_loss", "trainer.precision"),
)
RESUMES = Need(
    met=lambda way: way.resumed or way.multirun or way.conf.run.resume != "never",
    otherwise="a new run has no earlier data to compare with",
    instead="Resume a run: run.resume=auto, or rtrain resume RUN",
    keys=("run.resume",),
    portable=True,
)
NEW_RUN = Need(
    met=lambda way: way.verb != "resume",
    otherwise="the run continues where it is",
    instead="Leave it out, or start a new run: rtrain fit",
    keys=(),
    portable=True,
)
CHOOSES = Need(
    met=lambda way: way.verb == "fit",
    otherwise="the run is named already",
    instead="Leave it out",
    keys=(),
    portable=True,
)
STORAGE = Need(
    met=lambda way: way.conf.run.storage is not None,
    otherwise="the run is not copied",
    instead="Set a destination: run.storage=s3://bucket/runs",
    keys=("run.storage",),
    portable=True,
)
TOLD = Need(
    met=lambda way: bool(way.conf.run.loggers or way.conf.run.callbacks),
    otherwise="there are no trackers and no callbacks to wait for",
    instead="Add one: run.loggers=[tensorboard]",
    keys=("run.loggers", "run.callbacks"),
)
LOGGERS = Need(
    met=lambda way: bool(way.conf.run.loggers),
    otherwise="there is no tracker",
    instead="Add one: run.loggers=[tensorboard]",
    keys=("run.loggers",),
)


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
    """Save a checkpoint every n epochs; null: not by epoch. Rounds of boosted trees are not epochs."""

    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Write one after each so many optimizer steps, or rounds of boosted trees; null for none by step."""

    every_seconds: Annotated[float, Field(gt=0)] | None = 300.0
    """Write one when so many seconds have passed since the last one; null for none by time."""

    keep: Annotated[int, Field(ge=1)] = 2
    """Number of newest checkpoints that stay: should the last one be damaged, the one before it serves."""

    best: BestConf = field(default_factory=BestConf)

    upload: Annotated[str, *one_of("async", "sync")] = "async"
    """``async``: training continues while files are written from a copy in memory. ``sync``: training waits for them.
    It never waits for ``run.storage``."""

    on_exit: bool = True
    """Write one when a signal (Ctrl-C, SIGTERM, SIGUSR1) ends the run."""


@dataclass(kw_only=True)
class StopConf:
    """What ends a run early, whatever the trainer. Metrics are looked at whenever they are reported."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    target: dict[str, float | None] = field(default_factory=dict)
    """Stop once a metric is as good as this, e.g. ``{val/accuracy: 0.99}``; null: not for this metric, in place of a
    number of another file. A metric of which it isn't known which way is better is refused: ``bounds`` says it."""

    bounds: dict[str, BoundsConf] = field(default_factory=dict)
    """Stop once a metric leaves its bounds, e.g. ``{train/loss: {max: 100}}``."""

    @property
    def targets(self) -> dict[str, float]:
        """The metrics of ``target`` that have a number."""
        return {name: one for name, one in self.target.items() if one is not None}


@dataclass(kw_only=True)
class FailureConf:
    """How many failures of a run on Ray workers are retried, from its last checkpoint. An error in the config or the
    data ends the run immediately, and so does the same exception twice without progress in between."""

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
    """Hang timeout: seconds without a training step, once training has begun. After it, every worker writes its
    threads' stacks to ``logs/``, and the run restarts. null: wait forever. Custom train loops are not watched."""

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
        NEW_RUN.of("root_dir", "init_from"),
        CHOOSES.of("resume"),
    )

    name: Annotated[str, Field(pattern=NAME, max_length=MAX_NAME)] = "${hydra:job.name}"
    """Folder below ``root_dir`` that collects the runs of this config; unless set, the config's file name, or of a
    config.yaml its folder's, without accents and with - for all that a name may not contain."""

    root_dir: Annotated[str, AfterValidator(folder)] = "runs"
    """Folder that holds all runs. With workers on several machines, a folder that all of them reach."""

    storage: Annotated[str, AfterValidator(store)] | None = None
    """URL that each run is copied to while it trains, e.g. ``s3://bucket/runs`` (or ``gs://``, ``az://``, ``abfs://``,
    ``file:///mnt/runs``). The folders below it mirror ``root_dir``. null disables the copy."""

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
    """``never``: start a new run. ``auto``: resume the newest unfinished run of this config, if one exists. ``must``:
    the same, but fail if none exists. Any other value is the run directory to resume."""

    resume_data: Annotated[str, *one_of("same", "changed")] = "same"
    """``changed``: resume a run although the content of its data differs. How rows are chosen, split and prepared may
    never change."""

    init_from: str | None = None
    """Checkpoint, or run, whose weights a new run begins with; its optimizer and progress are left behind."""

    loggers: dict[str, Any] | None = field(default_factory=dict)
    """Trackers that receive the metrics, each with its keys: ``{mlflow: {tracking_uri: http://host:5000}}``, or a list
    of names: ``[tensorboard, csv]``. Those on the command line are added to those of a file. ``run.loggers=null``
    removes all, ``run.loggers.csv=null`` one."""

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
