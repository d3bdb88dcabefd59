"""What is wrong with a config of LightGBM, found before anything starts."""

from __future__ import annotations

from rtrain.trainers.base import Job
from rtrain.trainers.lightgbm.callbacks import check_own
from rtrain.trainers.lightgbm.params import check_params
from rtrain.trainers.loops.boosting.rounds import check_boosting


def check_conf(job: Job) -> None:
    """Check names and values of the parameters, and whether they fit the dataset."""
    check_boosting(job.conf.trainer, job)
    check_own(job.conf.trainer.callbacks, job.builder)
    check_params(job)
