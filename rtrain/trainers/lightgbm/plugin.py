"""The lightgbm plugin as the driver sees it; LightGBM itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.lightgbm import config
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.trained import CheckpointMetadata, LoadedCheckpoint, Predictor

EACH_ROUND = (
    *("learning_rate", "eta", "shrinkage_rate", "num_leaves", "max_depth", "min_data_in_leaf", "min_child_samples"),
    *("min_sum_hessian_in_leaf", "min_child_weight", "bagging_fraction", "subsample", "bagging_freq", "subsample_freq"),
    *("feature_fraction", "colsample_bytree", "feature_fraction_bynode", "max_delta_step", "min_gain_to_split"),
    *("lambda_l1", "reg_alpha", "lambda_l2", "reg_lambda"),
)
"""Parameters that count for the round that is grown alone."""


class Plugin(TrainerPlugin):
    """LightGBM: boosted trees for classes, numbers and rankings."""

    Conf = config.Conf
    requires = ("lightgbm",)
    can_init = True

    def check(self, job: Job) -> None:
        """Check names and values of the parameters, and whether they fit the dataset."""
        from rtrain.trainers.loops.boosting.rounds import check_boosting

        check_boosting(job.conf.trainer, job)
        from rtrain.trainers.lightgbm.params import check_params

        check_params(job)

    def directions(self, conf: config.Conf, allow: Sequence[str]) -> Directions:
        """Return which way the library's own metrics get better."""
        from rtrain.trainers.lightgbm.metrics import directions

        return directions(conf.metric_functions)

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare features and objective with those that the trees were grown for."""
        from rtrain.trainers.lightgbm.params import check_init

        check_init(job, wrote)

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let parameters change that count for the rounds to come alone, unless a resumed run grows all trees again."""
        from rtrain.trainers.lightgbm.draws import starts_again

        return frozenset() if starts_again(conf["params"]) else frozenset(f"params.{name}" for name in EACH_ROUND)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the library's own metrics, unless functions of the user's report others."""
        from rtrain.trainers.lightgbm.params import reported

        return reported(job)

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.boosting.judged import chosen_on_test

        return chosen_on_test(job)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the loop."""
        from rtrain.trainers.lightgbm.loop import train

        return train

    def backend_config(self, conf: config.Conf) -> Any:
        """Leave it to the train loop: the workers tell each other their addresses anew for each run."""
        from ray.train.backend import BackendConfig

        return BackendConfig()

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Load the trees of the checkpoint."""
        from rtrain.trainers.lightgbm.predictor import load_predictor

        return load_predictor(trained)
