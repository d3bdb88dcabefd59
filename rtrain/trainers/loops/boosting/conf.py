"""The keys that trainers of boosted trees share. The docstring under a field is the user's documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.renamed import renamed
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.epochs.conf import CAN_SKIP
from rtrain.trainers.loops.epochs.too_late import ENDED_BY_RUN, ENDED_BY_TRAINER, can_stop

HAS_EPOCHS = Need(
    met=lambda way: False,
    otherwise="boosted trees grow in rounds, not in epochs",
    instead="Write a checkpoint every N rounds: run.checkpoint.every_steps=10",
    keys=("trainer.type",),
)
HAS_STEPS = Need(
    met=lambda way: False,
    otherwise="the metrics of every round are recorded",
    instead="Leave it out",
    keys=("trainer.type",),
)
SAVED_BY_ROUND = Need(
    met=lambda way: (way.conf.run.checkpoint.every_steps or 0) <= way.trainer.num_boost_round,
    otherwise="the run ends before that many rounds",
    instead="Write checkpoints more often, or none by round: run.checkpoint.every_steps=null",
    keys=("trainer.num_boost_round",),
)
CAN_STOP = Need(
    met=lambda way: way.resumed or can_stop(way.trainer.early_stopping, way.trainer.num_boost_round),
    otherwise="the run ends before that many rounds without improvement",
    instead="Set fewer rounds, or train more trees",
    keys=("trainer.num_boost_round", "trainer.early_stopping", "trainer.early_stopping_rounds"),
)
NORMALIZED = Need(
    # Of streamed rows, the mean takes a pass over the files, which false leaves out.
    met=lambda way: way.info is None or way.info.memory == "stream",
    otherwise="boosted trees use the numbers as they are",
    instead="Leave it out",
    keys=("trainer.type", "dataset"),
    of_rows=True,
)
STOPS_EARLY = Need(
    met=lambda way: way.trainer.early_stopping is not None,
    otherwise="nothing stops the run early",
    instead="Use early_stopping.min_delta: trainer.early_stopping={patience: 10, min_delta: 0.01}",
    keys=("trainer.early_stopping", "trainer.early_stopping_rounds"),
)
METRIC_NAMES = ("metric", "metrics", "metric_types", "eval_metric")
"""What the libraries call the parameter that says what is measured."""
MEASURES = Need(
    met=lambda way: way.trainer.eval_splits != [],
    otherwise="trainer.eval_splits=[] evaluates nothing",
    instead="Set a split: trainer.eval_splits=[val]",
    keys=("trainer.eval_splits",),
)
SHUFFLES = Need(
    met=lambda way: False,
    otherwise="boosted trees use the rows in the order of the data",
    instead="Leave it out",
    keys=("trainer.type",),
    portable=True,
)


@dataclass(kw_only=True)
class BoostingConf(TrainLoopConf):
    """How many trees to grow, and what to measure meanwhile."""

    needs: ClassVar[Rules] = (
        *loop_needs(),
        CAN_STOP.of("early_stopping.patience"),
        STOPS_EARLY.of("early_stopping_min_delta"),
        MEASURES.of("metric_functions"),
        MEASURES.of_found(lambda way: [f"trainer.params.{one}" for one in way.trainer.params if one in METRIC_NAMES]),
        ENDED_BY_RUN.of("max_seconds"),
    )
    follows: ClassVar[Rules] = (
        *TrainLoopConf.follows,
        HAS_EPOCHS.of("run.checkpoint.every_epochs"),
        HAS_STEPS.of("run.log_every_steps"),
        CAN_SKIP.of("run.failure.max_skipped_steps"),
        SAVED_BY_ROUND.of("run.checkpoint.every_steps"),
        ENDED_BY_TRAINER.of("run.stop.max_seconds"),
        NORMALIZED.of_dataset("normalize"),
        SHUFFLES.of_dataset("num_shuffle_rows"),
    )

    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the library, under its own names. Those that follow from the dataset (objective, number of classes)
    and those that rtrain sets (seed, threads, device) are optional. Constraints accept names of features too."""

    num_boost_round: Annotated[int, Field(ge=1)] = 100
    """Rounds; each adds one tree, or one per class."""

    early_stopping: EarlyStoppingConf | None = None
    """Stop when a metric no longer gets better, each round being an evaluation; null: grow all trees."""

    early_stopping_rounds: Annotated[int, Field(ge=1)] | None = renamed("early_stopping.patience")
    """The old name of ``early_stopping.patience``."""

    early_stopping_min_delta: Annotated[float, Field(ge=0)] = renamed(
        "early_stopping.min_delta", default=0.0, within=True
    )
    """The old name of ``early_stopping.min_delta``."""

    eval_splits: list[str] | None = None
    """Splits to evaluate after each round, e.g. ``[train, val]``; the last one decides early stopping and the best
    round. null: ``val``, else ``test``; ``[]``: none."""

    objective_function: str | None = None
    """A custom objective, ``module:function``, called as the library calls one."""

    metric_functions: list[str] = field(default_factory=list)
    """Custom metrics, each ``module:function``, called as the library calls one."""

    callbacks: list[Any] = field(default_factory=list)
    """Callbacks on each worker, by ``_target_``: of the library, or classes that inherit ``rtrain.WorkerCallback``."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each worker; null: as many as it has cores."""
