"""``rtrain check``: all that is found out before a run begins, and no run."""

from __future__ import annotations

from rtrain.config.session import Session
from rtrain.runs.observer import Observer
from rtrain.trainers.base import Job
from rtrain.training.preparation import check_whole_job


def check_session(
    session: Session, observer: Observer, *, multirun: bool = False, with_data: bool = True
) -> Job | None:
    """Check the request of ``session`` as far as possible without training, and return its job; of a sweep, the first.

    Args:
        session: What the user asks for.
        observer: Notified of each step, and of anything the user should know.
        multirun: Whether a sweep is asked for.
        with_data: Read the data, and build and try what is to be trained; else check the config alone, and return None.

    Raises:
        ConfigError: Something is wrong.
    """
    composed = session.trials().probe if multirun else session.check()
    for notice in composed.notices:
        observer.notice(notice)
    if not with_data:
        return None
    with composed.redact.cleaning():
        job, *_ = check_whole_job(composed, observer)
        for notice in job.notices:
            observer.notice(notice)
    return job
