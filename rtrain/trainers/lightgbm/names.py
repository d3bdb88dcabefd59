"""The names that LightGBM's parameters and objectives have: each may have several."""

from __future__ import annotations

from collections.abc import Mapping

from lightgbm.basic import _ConfigAliases


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
