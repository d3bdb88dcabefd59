"""The test split where there is no val split: what is chosen by its metrics makes these optimistic."""

from __future__ import annotations

from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import AUTO, dataset_of, evaluated_split
from rtrain.trainers.loops.directions import monitored
from rtrain.trainers.loops.epochs.conf import EpochsConf


def chosen_on_test(job: Job, conf: EpochsConf) -> list[str]:
    """Return the notice that ``auto`` has the best checkpoint chosen on the test split; nothing where it is not.

    Args:
        job: What is to be trained, checked. Whoever names a metric of the test split for it knows.
        conf: How long training is, and when it is evaluated: a single evaluation chooses nothing.
    """
    info, best = dataset_of(job), job.conf.run.checkpoint.best
    if conf.evaluate_split != AUTO or evaluated_split(AUTO, info) != "test" or monitored(best, conf) is not None:
        return []
    num_judged = conf.num_evaluations(conf.steps_per_epoch(info, job.conf.scaling.min_workers))
    return [notice(job)] if num_judged is None or num_judged > 1 else []


def notice(job: Job) -> str:
    """Return the notice, with the key that makes a val split where the dataset has one."""
    splits = getattr(job.conf.dataset, "split", None)
    hint = "; to use another split: dataset.split.val=0.1" if hasattr(splits, "val") else ""
    return f"the best checkpoint is chosen on the split 'test', which makes its metrics optimistic{hint}"
