"""The lightgbm plugin as the driver sees it; LightGBM itself is imported only by its parts."""

from __future__ import annotations

from rtrain.trainers.lightgbm import config, world
from rtrain.trainers.loops.boosting.plugin import BoostingPlugin


class Plugin(BoostingPlugin):
    """LightGBM: boosted trees for classes, numbers and rankings."""

    Conf = config.Conf
    requires = ("lightgbm",)
    worker_modules = ("rtrain.trainers.lightgbm.loop",)
    reported = ("model.txt",)
    watched = world.WATCHED
    functions_say_modes = True
    each_round = (
        *("learning_rate", "eta", "shrinkage_rate", "num_leaves", "max_depth", "min_data_in_leaf", "min_child_samples"),
        *(
            "min_sum_hessian_in_leaf",
            "min_child_weight",
            "bagging_fraction",
            "subsample",
            "bagging_freq",
            "subsample_freq",
        ),
        *("feature_fraction", "colsample_bytree", "feature_fraction_bynode", "max_delta_step", "min_gain_to_split"),
        *("lambda_l1", "reg_alpha", "lambda_l2", "reg_lambda"),
    )
