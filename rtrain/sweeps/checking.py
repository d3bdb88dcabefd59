"""``rtrain check --multirun``: a sweep and its first trial, checked as far as possible without training."""

from __future__ import annotations

from functools import partial

from rtrain.config.trials import Trials
from rtrain.runs.observer import Observer
from rtrain.sweeps.factory import check_reported, decides_nothing, goals_of, make_scheduler, make_search
from rtrain.sweeps.planning import check_resume
from rtrain.trainers.base import Job
from rtrain.training.checking import check_composed


def check_sweep(trials: Trials, observer: Observer) -> Job:
    """Check what searches and schedules, and the first trial; return the job of that.

    Args:
        trials: The trials of the command.
        observer: Notified of each step, and of anything the user should know.

    Raises:
        ConfigError: Something is wrong.
    """
    check_resume(trials.probe)
    job, plugin = check_composed(trials.probe, observer)
    reported = partial(plugin.reports, job)
    goals = goals_of(trials.conf, trials.probe, reported)
    make_search(trials, goals, reported)
    check_reported([goal.metric for goal in goals], reported(), job.conf.trainer)
    scheduler = make_scheduler(trials, goals, reported)
    if scheduler is not None and (idle := decides_nothing(scheduler)):
        observer.notice(idle)
    return job
