"""``rtrain check --multirun``: a sweep and its trials, checked as far as possible without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rtrain.config.composed import Composed
from rtrain.config.trials import Trials
from rtrain.runs.observer import Observer, SilentObserver
from rtrain.searches.base import Search
from rtrain.sweeps.factory import check_reported, decides_nothing, goals_of, make_scheduler, make_search
from rtrain.sweeps.planning import Planner, check_resume, named
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.trainers.base import Job
from rtrain.training.checking import check_composed
from rtrain.training.preparation import check_job


def check_sweep(trials: Trials, observer: Observer) -> Job:
    """Check what searches and schedules, and the trials; return the job of the first.

    What the trials build is checked on the rows of the first, if they are to train on the same. Only that one is tried.

    Args:
        trials: The trials of the command.
        observer: Notified of each step, and of anything the user should know.

    Raises:
        ConfigError: Something is wrong.
    """
    probe = trials.probe
    check_resume(probe)
    job, plugin = check_composed(probe, observer)
    reported = partial(plugin.reports, job)
    goals = goals_of(trials.conf, probe, reported)
    search = make_search(trials, goals, reported)
    check_reported([goal.metric for goal in goals], reported(), job.conf.trainer)
    scheduler = make_scheduler(trials, goals, reported)
    if scheduler is not None and (idle := decides_nothing(scheduler)):
        observer.notice(idle)
    for words, what, composed in _trials(trials, search):
        if all(composed.resolved.get(part) == probe.resolved.get(part) for part in ("dataset", "datasets")):
            with named(words, what):
                check_job(composed, job.dataset, SilentObserver())
    return job


def _trials(trials: Trials, search: Search) -> Iterator[tuple[Sequence[str], str, Composed]]:
    """Yield the trials, composed; of those that a search thinks of later, some that have each of its values."""
    planner = Planner(trials, search, SweepRecord(trials.folder, {}, begins=True))
    if not search.adaptive:
        for trial, plan in iter(planner.next, None):
            yield trial.overrides, f"trial {trial.number}", plan.composed
        return
    for words, plan in planner.sampled():
        yield words, "a trial", plan.composed
