"""The search and the scheduler that a sweep's config names, and what they are to look for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from rtrain.config.composed import Composed
from rtrain.config.did_you_mean import to_try
from rtrain.config.sweep_conf import SweepConf
from rtrain.config.trials import Trials
from rtrain.config.value_types.goals import listed
from rtrain.errors import ConfigError
from rtrain.schedulers.base import Scheduler, StoppingConf
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.base import Objective, Search
from rtrain.searches.registry import SEARCHES
from rtrain.trainers.loops.directions import Directions, monitored, not_reported
from rtrain.trainers.registry import has_own_loop, trainer_of

Reported = Callable[[], "Sequence[str] | None"]
"""Returns the metrics that trials report, the usual one first; None: only they themselves know."""


def goals_of(conf: SweepConf, probe: Composed, reported: Reported) -> list[Objective]:
    """Return the goals of a sweep; none if its config has none and none are needed beforehand.

    Args:
        conf: The section ``sweep``.
        probe: The common part of the trials. The metric of their best checkpoint is used if one is needed.
        reported: The metrics that trials report, for messages.

    Raises:
        ConfigError: There are not as many modes as metrics, or modes alone, or the direction of a metric isn't known.
    """
    metrics, modes = listed(conf.metric), listed(conf.mode)
    best, trainer = probe.conf.run.checkpoint.best, probe.conf.trainer
    named = monitored(best, trainer)
    if not metrics and modes != ["auto"]:
        raise ConfigError(
            f"sweep.mode={','.join(modes)} needs a metric, but sweep.metric is not set.",
            f"Add it, {_example(reported, modes[0], probe)}, or remove the mode.",
        )
    if not metrics and named is not None and (_is_adaptive(conf) or conf.scheduler is not None):
        metrics, modes = [named], ["auto"]
    if len(modes) == 1 and isinstance(conf.mode, str):
        modes = modes * len(metrics)
    if metrics and len(modes) != len(metrics):
        raise ConfigError(
            f"sweep.mode: {len(modes)} modes for {len(metrics)} metrics.", "Set one for each metric, or mode: auto"
        )
    if "auto" not in modes or not metrics:
        return [Objective(metric=metric, mode=mode) for metric, mode in zip(metrics, modes, strict=False)]
    known = _directions(probe)
    if any(mode == "auto" and known.of(metric) is None for metric, mode in zip(metrics, modes, strict=True)):
        check_reported(metrics, reported(), probe.conf.trainer)  # a name that is wrong has no direction
    return [
        Objective(metric=metric, mode=known.needed(metric, "sweep.mode") if mode == "auto" else mode)
        for metric, mode in zip(metrics, modes, strict=False)
    ]


def check_reported(metrics: Iterable[str], reported: Sequence[str] | None, trainer: Any) -> None:
    """Refuse to look for a metric that trials won't report.

    Args:
        metrics: What a sweep looks for.
        reported: What they report; None: only they themselves know.
        trainer: The trainer's conf.

    Raises:
        ConfigError: Names the metric, and those that there are.
    """
    for name in metrics:
        if reported is not None and name not in reported:
            raise not_reported("sweep.metric", name, reported, trainer, "the trials report")


def _is_adaptive(conf: SweepConf) -> bool:
    kind: type[Search] = SEARCHES.load(SEARCHES.name_of(conf))
    return kind.adaptive


def make_search(trials: Trials, goals: list[Objective], reported: Reported) -> Search:
    """Return the search of a sweep.

    Raises:
        ConfigError: It does not fit what is varied, or what is looked for.
    """
    name = SEARCHES.name_of(trials.conf)
    kind: type[Search] = SEARCHES.load(name)
    if kind.adaptive and not goals:
        raise _unknown_goal(f"sweep={name} proposes trials based on the results of earlier ones", reported)
    if len(goals) > 1 and not kind.many_goals:
        raise ConfigError(
            f"sweep.metric: sweep={name} optimizes one metric, not {len(goals)}.",
            "Choose one of them, or optimize several with sweep=optuna",
        )
    return kind(trials.conf, trials.axes, goals)


def make_scheduler(trials: Trials, goals: list[Objective], reported: Reported) -> Scheduler | None:
    """Return the scheduler of a sweep, if it has one.

    Raises:
        ConfigError: It does not know what trials are judged by.
    """
    conf: Any = trials.conf.scheduler
    if conf is None:
        return None
    name = SCHEDULERS.name_of(conf)
    kind: type[Scheduler] = SCHEDULERS.load(name)
    if not goals:
        raise _unknown_goal(f"sweep/scheduler={name} must know how to judge trials", reported)
    if len(goals) > 1:
        raise ConfigError(
            f"sweep.metric: a scheduler judges trials by one metric, not by {len(goals)}.",
            "Choose one of them, or remove the scheduler: sweep/scheduler=none",
        )
    if kind.pauses and not trials.probe.conf.run.checkpoint.on_exit:
        raise ConfigError(
            f"run.checkpoint.on_exit: sweep/scheduler={name} pauses trials, which requires a checkpoint.",
            "Remove it: its default is true.",
        )
    if kind.exploits and trials.probe.conf.run.storage is not None:
        raise ConfigError(
            f"run.storage: sweep/scheduler={name} copies checkpoints between runs, which run.storage does not support.",
            "Remove it, and copy the best run afterwards: rtrain runs upload RUN --to s3://bucket/runs",
        )
    if kind.exploits and _is_adaptive(trials.conf):
        raise ConfigError(
            f"sweep/scheduler={name} chooses values itself, so it needs all trials at the start.",
            "Draw the first ones at random: sweep=random sweep.num_trials=8",
        )
    return kind(conf, goals[0], trials.axes, _length(trials.probe.conf.trainer, conf.unit))


def decides_nothing(scheduler: Scheduler) -> str | None:
    """Return why a scheduler can decide nothing, if its first decision is not before the end of whole trials."""
    name = "grace" if isinstance(scheduler.conf, StoppingConf) else "interval"
    first, unit = getattr(scheduler.conf, name, 0), scheduler.conf.unit
    if scheduler.longest is None or first < scheduler.longest:
        return None
    return f"sweep.scheduler.{name}={first}: it would decide only when trials end, at {scheduler.longest} {unit}"


def _length(trainer: Any, unit: str) -> int | None:
    """Return how long a whole trial is, if its config says it."""
    names: tuple[str, ...] = ("max_steps", "num_boost_round") if unit == "steps" else ("max_epochs", "num_boost_round")
    if has_own_loop(trainer):  # it counts epochs and rounds itself
        names = tuple(name for name in names if name == "max_steps")
    found = [getattr(trainer, name, None) for name in names]
    return next((length for length in found if length is not None), None)


def _unknown_goal(why: str, reported: Reported) -> ConfigError:
    return ConfigError(f"sweep.metric: {why}.", to_try(_example(reported)))


def _directions(probe: Composed) -> Directions:
    """Return what is known of the directions of the metrics that trials report."""
    conf = probe.conf.trainer
    directions: Directions = trainer_of(probe.resolved["trainer"]).directions(conf, probe.builder)
    return directions.configured(probe.conf.run.checkpoint.best, conf)


def _example(reported: Reported, mode: str = "auto", probe: Composed | None = None) -> str:
    """Return the word that names a metric which the trials report, or its form where only they know their metrics.

    One whose direction is the given mode is preferred.
    """
    names = reported() or ()
    fitting = (name for name in names if probe is not None and _directions(probe).of(name) == mode)
    return f"sweep.metric={next(chain(fitting, names), 'METRIC')}"
