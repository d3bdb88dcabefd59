"""The names that XGBoost's parameters have, those that rtrain has other keys for, and how parameters are tried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import xgboost

from rtrain.trainers.loops.boosting.params import ELSEWHERE

NOT_IN_THE_MODEL = (
    *("base_score", "booster", "objective", "num_class", "eval_metric", "disable_default_eval_metric", "verbosity"),
    *("eta", "gamma", "lambda", "alpha", "tree_method", "updater", "seed_per_iteration", "max_cached_hist_node"),
    *("interaction_constraints", "monotone_constraints", "extmem_single_page", "use_rmm", "ndcg_exp_gain"),
    *("aft_loss_distribution", "aft_loss_distribution_scale", "top_k"),
)
"""Parameters that a model's own description leaves out or calls by another name."""
OF_A_MODEL = ("name", "num_feature", "num_target", "specified_updater", "updater_seq")
"""Fields of a model's description that are not parameters."""
OURS = {
    "nthread": "trainer.num_threads",
    "n_jobs": "trainer.num_threads",
    "seed": "run.seed",
    "random_state": "run.seed",
    "device": "scaling.use_gpu",
    "n_estimators": "trainer.num_boost_round",
    "num_boost_round": "trainer.num_boost_round",
    "early_stopping_rounds": "trainer.early_stopping.patience",
    "early_stopping_min_delta": "trainer.early_stopping.min_delta",
    "min_delta": "trainer.early_stopping.min_delta",
    "enable_categorical": "dataset.categorical",
    "feature_types": "dataset.categorical",
    "num_trees": "trainer.num_boost_round",
    "save_period": "run.checkpoint.every_steps",
    "model_in": "run.init_from",
    "xgb_model": "run.init_from",
    "model_dir": "run.root_dir",
    **ELSEWHERE,
}
ALIASES = {"learning_rate": "eta", "min_split_loss": "gamma", "reg_lambda": "lambda", "reg_alpha": "alpha"}
"""Second names of parameters; XGBoost takes them over the first ones in silence."""
BOOSTERS = ("gbtree", "dart", "gblinear")
OBJECTIVES = (
    *("reg:quantileerror", "reg:tweedie", "reg:pseudohubererror"),
    *("binary:logistic", "multi:softprob", "rank:ndcg"),
)
"""One for each set of parameters that objectives bring."""


@cache
def known_names() -> set[str]:
    """Return the names that XGBoost's boosters and objectives take."""
    names = set(NOT_IN_THE_MODEL)
    for booster in BOOSTERS:
        for objective in OBJECTIVES:
            names |= set(_names(booster, objective))
    return names - {*OF_A_MODEL}


def _names(booster: str, objective: str) -> Iterator[str]:
    params: dict[str, Any] = {"booster": booster, "objective": objective}
    if objective == "multi:softprob":
        params["num_class"] = 2
    if objective == "reg:quantileerror":
        params["quantile_alpha"] = [0.5]
    rows = xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1], qid=[0, 0] if objective == "rank:ndcg" else None)
    yield from _leaves(json.loads(try_out(params, rows).save_config()))


def try_out(params: Mapping[str, Any], rows: xgboost.DMatrix) -> xgboost.Booster:
    """Return a booster that took the parameters and grew a tree of nothing with them."""
    booster = xgboost.Booster({"nthread": 1, **params, "verbosity": 0}, [rows])
    booster.update(rows, 0)
    return booster


def _leaves(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value) if isinstance(value, (dict, list)) else (name,)
    elif isinstance(node, list):
        for one in node:
            yield from _leaves(one)
