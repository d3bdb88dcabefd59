"""The xgboost plugin as the driver sees it; XGBoost itself is imported only by its parts."""

from __future__ import annotations

from rtrain.trainers.loops.boosting.plugin import BoostingPlugin
from rtrain.trainers.xgboost import config, world


class Plugin(BoostingPlugin):
    """XGBoost: boosted trees for classes, numbers and rankings."""

    Conf = config.Conf
    requires = ("xgboost",)
    worker_modules = ("rtrain.trainers.xgboost.loop", "ray.train.xgboost")
    backend = "ray.train.xgboost.XGBoostConfig"
    """Ray starts the tracker through which workers find each other."""
    reported = ("model.ubj", "model.json", "*.ubj")
    watched = world.WATCHED
    each_round = (
        *("eta", "learning_rate", "max_depth", "max_leaves", "min_child_weight", "gamma", "min_split_loss"),
        *("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode", "max_delta_step"),
        *("lambda", "reg_lambda", "alpha", "reg_alpha"),
    )
