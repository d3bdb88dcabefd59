"""The names that LightGBM's parameters and objectives have, each maybe several, and what rtrain has instead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lightgbm.basic import _ConfigAliases

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.boosting.params import ELSEWHERE

OURS = {
    "num_threads": "trainer.num_threads",
    "seed": "run.seed",
    "num_iterations": "trainer.num_boost_round",
    "early_stopping_round": "trainer.early_stopping.patience",
    "machines": "scaling.num_workers",
    "num_machines": "scaling.num_workers",
    "local_listen_port": "scaling.num_workers",
    "machine_list_filename": "scaling.num_workers",
    "pre_partition": "scaling.num_workers",
    "data": "dataset",
    "valid": "dataset",
    "header": "dataset",
    "two_round": "dataset",
    "save_binary": "dataset",
    "parser_config_file": "dataset",
    "precise_float_parser": "dataset",
    "config": "trainer.params",
    "first_metric_only": "run.checkpoint.best.monitor",
    "early_stopping_min_delta": "trainer.early_stopping.min_delta",
    "input_model": "run.init_from",
    "output_model": "run.root_dir",
    "snapshot_freq": "run.checkpoint.every_steps",
    "is_provide_training_metric": "trainer.eval_splits",
    "metric_freq": "trainer.eval_splits",
    "task": "dataset.task",
    "categorical_feature": "dataset.categorical",
    "weight_column": "dataset.weight",
    "group_column": "dataset.group",
    "label_column": "dataset.label",
    "ignore_column": "dataset.drop",
}
"""By LightGBM's main names: what rtrain sets itself."""
OF_FILES = (
    *("output_result", "convert_model", "convert_model_language", "saved_feature_importance_type"),
    *("predict_contrib", "predict_leaf_index", "predict_raw_score", "predict_disable_shape_check"),
    *("pred_early_stop", "pred_early_stop_freq", "pred_early_stop_margin"),
    *("num_iteration_predict", "start_iteration_predict", "refit_decay_rate"),
)
"""Main names of what LightGBM takes and ignores in training: settings of predictions and of models in files."""


def main_name(name: str) -> str | None:
    """Return LightGBM's main name of a parameter, which may have several; None if there is none of this name."""
    aliases: Mapping[str, list[str]] = _ConfigAliases._get_all_param_aliases()
    return next((main for main, others in aliases.items() if name == main or name in others), None)


def all_names() -> list[str]:
    """Return every name of every parameter."""
    aliases: Mapping[str, list[str]] = _ConfigAliases._get_all_param_aliases()
    return sorted({name for main, others in aliases.items() for name in (main, *others)})


OBJECTIVES: Mapping[str, tuple[str, ...]] = {
    "regression": ("regression_l2", "l2", "mean_squared_error", "mse", "l2_root", "root_mean_squared_error", "rmse"),
    "regression_l1": ("l1", "mean_absolute_error", "mae"),
    "huber": (),
    "fair": (),
    "poisson": (),
    "quantile": (),
    "mape": ("mean_absolute_percentage_error",),
    "gamma": (),
    "tweedie": (),
    "binary": (),
    "multiclass": ("softmax",),
    "multiclassova": ("multiclass_ova", "ova", "ovr"),
    "cross_entropy": ("xentropy",),
    "cross_entropy_lambda": ("xentlambda",),
    "lambdarank": (),
    "rank_xendcg": ("xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"),
}
"""LightGBM's objectives, each with its other names."""


def main_objective(name: str) -> str:
    """Return LightGBM's main name of an objective; the name itself if there is none."""
    return next((main for main, others in OBJECTIVES.items() if name in others), name)


def usual_objective(info: DatasetInfo) -> dict[str, Any]:
    """Return the objective of the dataset's task."""
    if info.task == "ranking":
        return {"objective": "lambdarank", "eval_at": [1, 3, 5]}
    if info.task == "regression":
        return {"objective": "regression"}
    return {"objective": "binary" if info.num_classes == 2 else "multiclass"}


@cache
def ours() -> dict[str, str]:
    """Return what ``OURS`` tells, by all names of the parameters; empty for those that training ignores."""
    by_main = OURS | dict.fromkeys(OF_FILES, "")
    return ELSEWHERE | {name: by_main[main] for name in all_names() if (main := main_name(name) or name) in by_main}
