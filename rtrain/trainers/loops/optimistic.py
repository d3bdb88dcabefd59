"""The test split where there is no val split: what is chosen by its metrics makes these optimistic."""

from __future__ import annotations

from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import AUTO, dataset_of, evaluated_split
from rtrain.trainers.loops.directions import monitored
from rtrain.trainers.loops.epochs.conf import EpochsConf

WITH_TEST = "'dataset.split={val: 0.1, test: 0.2}'"
"""A share for val alone would leave no test split where that is a share too."""


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
    said = "the best checkpoint is chosen on the split 'test', which makes its metrics optimistic"
    splits = getattr(job.conf.dataset, "split", None)
    if splits is None or not hasattr(splits, "val"):
        return said
    if splits.test is not None:
        return f"{said}; to use another split: dataset.split.val=0.1"
    return f"{said}; to use another split: {WITH_TEST}, or dataset.split.val=0.1 if the data has test files"
