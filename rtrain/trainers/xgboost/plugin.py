"""The xgboost plugin as the driver sees it; XGBoost itself is imported only by its methods."""

from __future__ import annotations

from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.trained import About, Predictor, Trained
from rtrain.trainers.xgboost import config


class Plugin(TrainerPlugin):
    """XGBoost: boosted trees for classes, numbers and rankings."""

    Conf = config.Conf
    requires = ("xgboost",)
    can_init = True

    def check(self, job: Job) -> None:
        """Check names and values of the parameters, and whether they fit the dataset."""
        from rtrain.trainers.boosting import check_boosting

        check_boosting(job.conf.trainer, job)
        from rtrain.trainers.xgboost.params import check_params

        check_params(job)

    def check_init(self, job: Job, wrote: About) -> None:
        """Compare features and objective with those that the trees were grown for."""
        from rtrain.trainers.xgboost.params import check_init

        check_init(job, wrote)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the loop."""
        from rtrain.trainers.xgboost.loop import train

        return train

    def backend_config(self, conf: config.Conf) -> Any:
        """Let Ray start the tracker through which workers find each other."""
        from ray.train.xgboost import XGBoostConfig

        return XGBoostConfig()

    def load_predictor(self, trained: Trained, device: str) -> Predictor:
        """Load the trees of the checkpoint."""
        from rtrain.trainers.xgboost.predictor import load_predictor

        return load_predictor(trained, device)
