"""The xgboost plugin as the driver sees it; XGBoost itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.trained import CheckpointMetadata, LoadedCheckpoint, Predictor
from rtrain.trainers.xgboost import config

EACH_ROUND = (
    *("eta", "learning_rate", "max_depth", "max_leaves", "min_child_weight", "gamma", "min_split_loss"),
    *("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode", "max_delta_step"),
    *("lambda", "reg_lambda", "alpha", "reg_alpha"),
)
"""Parameters that count for the round that is grown alone."""


class Plugin(TrainerPlugin):
    """XGBoost: boosted trees for classes, numbers and rankings."""

    Conf = config.Conf
    requires = ("xgboost",)
    can_init = True

    def check(self, job: Job) -> None:
        """Check names and values of the parameters, and whether they fit the dataset."""
        from rtrain.trainers.loops.boosting.rounds import check_boosting

        check_boosting(job.conf.trainer, job)
        from rtrain.trainers.xgboost.data import check_weights, tell_of_digits
        from rtrain.trainers.xgboost.params import check_params

        check_params(job)
        check_weights(job.dataset)
        if job.dataset is not None:
            tell_of_digits(job.dataset.info)

    def directions(self, conf: config.Conf, allow: Sequence[str]) -> Directions:
        """Return which way the library's own metrics get better."""
        from rtrain.trainers.xgboost.metrics import directions

        return directions()

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare features and objective with those that the trees were grown for."""
        from rtrain.trainers.xgboost.params import check_init

        check_init(job, wrote)

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let parameters change that count for the rounds to come alone, unless a resumed run grows all trees again."""
        from rtrain.trainers.xgboost.draws import starts_again

        return frozenset() if starts_again(conf["params"]) else frozenset(f"params.{name}" for name in EACH_ROUND)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the library's own metrics, unless functions of the user's report others."""
        from rtrain.trainers.xgboost.params import reported

        return reported(job)

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.boosting.judged import chosen_on_test

        return chosen_on_test(job)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the loop."""
        from rtrain.trainers.xgboost.loop import train

        return train

    def backend_config(self, conf: config.Conf) -> Any:
        """Let Ray start the tracker through which workers find each other."""
        from ray.train.xgboost import XGBoostConfig

        return XGBoostConfig()

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Load the trees of the checkpoint."""
        from rtrain.trainers.xgboost.predictor import load_predictor

        return load_predictor(trained, device)
