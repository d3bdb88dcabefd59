"""``rtrain check``: all that is found out before a run begins, and no run."""

from __future__ import annotations

from rtrain.config.composed import Composed
from rtrain.runs.observer import Observer
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.training.preparation import check_whole_job


def check_composed(composed: Composed, observer: Observer) -> tuple[Job, TrainerPlugin]:
    """Check a config as far as possible without training, and return its job and the trainer's plugin.

    Args:
        composed: What the user asks for.
        observer: Notified of each step, and of anything the user should know.

    Raises:
        ConfigError: Something is wrong.
    """
    with composed.redact.cleaning():
        job, plugin, *_ = check_whole_job(composed, observer)
        for notice in job.notices:
            observer.notice(notice)
    return job, plugin
