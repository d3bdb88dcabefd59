"""Keys that count steps, epochs or evaluations, of which a run may have fewer than they say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rtrain.config.needs import Need, Rule, Way

if TYPE_CHECKING:
    from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
    from rtrain.trainers.loops.epochs.conf import EpochsConf, LimitsConf

STEPS_OF_SCHEDULES = ("num_warmup_steps", "warmup_steps", "step_size")
"""Arguments of schedules, of any framework, that count the steps until something new begins."""


def _comes_too_late(every: float | None, last: float | None) -> bool:
    return every is not None and last is not None and every > last


def _seconds(way: Way) -> float | None:
    """Return the seconds that the run may take; None for no limit."""
    limits = (way.trainer.max_seconds, way.conf.run.stop.max_seconds)
    return min((one for one in limits if one is not None), default=None)


def _has_epochs(way: Way) -> bool:
    """Return whether the rows of an epoch are known; what an epoch of a train loop of the user's is, only it knows."""
    return way.info is not None and getattr(way.trainer, "train_loop", None) is None


def _ends_by_epochs(way: Way) -> bool:
    """Return whether the epochs of the run are over before its ``max_steps``, however many workers share the rows."""
    conf: LimitsConf = way.trainer
    if conf.max_steps is None or conf.max_epochs is None or not _has_epochs(way):
        return False
    return conf.max_steps > conf.max_epochs * conf.steps_per_epoch(way.info, way.conf.scaling.min_workers)


def _ends_by_steps(way: Way) -> bool:
    """Return whether ``max_steps`` of the run are over before its epochs, however many workers share the rows."""
    conf: LimitsConf = way.trainer
    if conf.max_steps is None or conf.max_epochs is None or not _has_epochs(way):
        return False
    return conf.max_steps < conf.max_epochs * conf.steps_per_epoch(way.info, int(way.conf.scaling.num_workers))


def most_steps(way: Way) -> int | None:
    """Return the most optimizer steps that a run takes; None before its rows are read, or if only the clock ends it."""
    conf: LimitsConf = way.trainer
    return conf.num_steps(conf.steps_per_epoch(way.info, way.conf.scaling.min_workers)) if _has_epochs(way) else None


def _most_evaluations(way: Way) -> int | None:
    """Return the most evaluations that early stopping judges; None where that is not known."""
    conf: EpochsConf = way.trainer
    if not _has_epochs(way):
        return None
    return conf.num_evaluations(conf.steps_per_epoch(way.info, way.conf.scaling.min_workers))


def can_stop(early: EarlyStoppingConf | None, num_evaluations: int | None) -> bool:
    """Return whether early stopping can end a run that has so many evaluations; None: not known how many."""
    # The first one is an improvement, and after the last one there is nothing left to stop.
    return early is None or not _comes_too_late(early.patience + 2, num_evaluations)


OF_STEPS = (
    *("trainer.max_epochs", "trainer.max_steps", "trainer.batch_size", "trainer.global_batch_size"),
    *("trainer.accumulate_steps", "trainer.strategy", "trainer.type", "scaling.num_workers", "dataset"),
)
"""What decides how many steps a run takes."""
BY_EPOCH = Need(
    met=lambda way: not _comes_too_late(way.trainer.eval_every_epochs, way.trainer.max_epochs),
    otherwise="the run ends before that many epochs",
    instead="Evaluate more often, or at the end only: trainer.eval_every_epochs=null",
    keys=("trainer.max_epochs",),
)
BY_STEP = Need(
    met=lambda way: not _comes_too_late(way.trainer.eval_every_steps, way.trainer.max_steps),
    otherwise="the run ends before that many steps",
    instead="Evaluate more often, or at the end only: trainer.eval_every_steps=null",
    keys=("trainer.max_steps",),
)
BY_STEP_OF_ROWS = replace(
    BY_STEP,
    met=lambda way: not _comes_too_late(way.trainer.eval_every_steps, most_steps(way)),
    keys=("trainer.eval_every_steps", *OF_STEPS),
    of_rows=True,
)
SAVED_BY_EPOCH = replace(
    BY_EPOCH,
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_epochs, way.trainer.max_epochs),
    instead="Write checkpoints more often, or none by epoch: run.checkpoint.every_epochs=null",
)
SAVED_BY_STEP = replace(
    BY_STEP,
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_steps, way.trainer.max_steps),
    instead="Write checkpoints more often, or none by step: run.checkpoint.every_steps=null",
)
SAVED_BY_STEP_OF_ROWS = replace(
    SAVED_BY_STEP,
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_steps, most_steps(way)),
    keys=("run.checkpoint.every_steps", *OF_STEPS),
    of_rows=True,
)
LOGGED_BY_STEP = replace(
    BY_STEP_OF_ROWS,
    met=lambda way: not _comes_too_late(way.conf.run.log_every_steps, most_steps(way)),
    instead="Log more often",
    keys=("run.log_every_steps", *OF_STEPS),
)
EARLIER = Need(
    met=lambda way: way.info is None or not _ends_by_epochs(way),
    otherwise="trainer.max_epochs ends the run earlier",
    instead="Train for more epochs, or remove the limit: trainer.max_epochs=null",
    keys=("trainer.max_steps", *OF_STEPS),
    of_rows=True,
    documented=True,
)
SOONER = replace(
    EARLIER,
    met=lambda way: way.info is None or not _ends_by_steps(way),
    otherwise="trainer.max_steps ends the run earlier",
    instead="Set more steps, or remove the limit: trainer.max_steps=null",
    keys=("trainer.max_epochs", *OF_STEPS),
)
ENDED_BY_RUN = Need(
    met=lambda way: not _comes_too_late(way.trainer.max_seconds, way.conf.run.stop.max_seconds),
    otherwise="run.stop.max_seconds ends the run earlier",
    instead="Set only one of them",
    keys=("trainer.max_seconds", "run.stop.max_seconds"),
    documented=True,
)
ENDED_BY_TRAINER = replace(
    ENDED_BY_RUN,
    met=lambda way: not _comes_too_late(way.conf.run.stop.max_seconds, way.trainer.max_seconds),
    otherwise="trainer.max_seconds ends the run earlier",
)
EVALUATED = Need(
    met=lambda way: way.info is None or any(way.info.num_rows.get(one) for one in ("val", "test")),
    otherwise="the dataset has no rows to evaluate on",
    instead="Add a split: dataset.split.val=0.1",
    keys=("dataset",),
    of_rows=True,
)
IN_TIME = Need(
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_seconds, _seconds(way)),
    otherwise="the run ends before that many seconds",
    instead="Write checkpoints more often, or none by time: run.checkpoint.every_seconds=null",
    keys=("trainer.max_seconds", "run.stop.max_seconds"),
)
JUDGED = Need(
    met=lambda way: can_stop(way.trainer.early_stopping, _most_evaluations(way)),
    otherwise="the run ends before that many evaluations without improvement",
    instead="Set fewer evaluations, or train for longer",
    keys=("trainer.early_stopping", "trainer.eval_every_epochs", "trainer.eval_every_steps", *OF_STEPS),
    of_rows=True,
)


WATCHED = replace(
    JUDGED,
    met=lambda way: way.trainer.early_stopping is None or _most_evaluations(way) != 0,
    otherwise="the run is not evaluated before its end",
    instead="Evaluate earlier: trainer.eval_every_epochs=1",
)


def schedules_of(*sections: str) -> Rule:
    """Return the rule of schedules that begin with something new after so many steps.

    Args:
        sections: Keys of the trainer that hold schedules, at any depth.
    """
    return STARTED.of_found(lambda way: _too_late(way, sections))


STARTED = Need(
    met=lambda way: way.info is None,
    otherwise="the run ends before that many steps",
    instead="Set fewer steps, or train for longer",
    keys=("trainer.scheduler", "trainer.scheduler_interval", "trainer.optimizer", "trainer.arguments", *OF_STEPS),
    of_rows=True,
)


def _too_late(way: Way, sections: Sequence[str]) -> Iterator[str]:
    """Yield the keys whose steps the run doesn't reach; all that count steps before its rows are read."""
    last = most_steps(way)
    for section in sections:
        for key, value in _counts(getattr(way.trainer, section), f"trainer.{section}"):
            if way.info is None or (last is not None and value >= _in_units(way, last, section)):
                yield key


def _in_units(way: Way, steps: int, section: str) -> int:
    """Return the length of the run as a schedule counts it."""
    if section != "scheduler" or getattr(way.trainer, "scheduler_interval", "step") == "step":
        return steps
    conf: EpochsConf = way.trainer
    return math.ceil(steps / conf.steps_per_epoch(way.info, way.conf.scaling.min_workers))


def _counts(node: Any, where: str) -> Iterator[tuple[str, int]]:
    """Yield the arguments of schedules that count steps, with their keys."""
    parts = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for name, value in parts:
        key = f"{where}.{name}"
        if name in STEPS_OF_SCHEDULES and isinstance(value, int) and value > 0:
            yield key, value
        else:
            yield from _counts(value, key)
