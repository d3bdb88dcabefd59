"""What is wrong with a config of XGBoost, found before anything starts."""

from __future__ import annotations

from rtrain.trainers.base import Job
from rtrain.trainers.loops.boosting.rounds import check_boosting
from rtrain.trainers.xgboost.callbacks import check_own
from rtrain.trainers.xgboost.inputs import check_weights, tell_of_digits
from rtrain.trainers.xgboost.params import check_params


def check_conf(job: Job) -> None:
    """Check names and values of the parameters, and whether they fit the dataset."""
    check_boosting(job.conf.trainer, job)
    check_own(job.conf.trainer.callbacks, job.builder)
    check_params(job)
    check_weights(job.dataset)
    if job.dataset is not None:
        tell_of_digits(job.dataset.info)
