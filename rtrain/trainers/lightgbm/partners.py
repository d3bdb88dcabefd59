"""Parameters of LightGBM that act only with another one; LightGBM silently ignores them where that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rtrain.config.diagnostics.meant.rewritten import number_in
from rtrain.config.needs import Need, Rule, Way

Given = Mapping[str, Any]
"""The parameters of a config under their main names; the objective is always there, under its own."""


def _number(given: Given, name: str, usual: float) -> float:
    try:
        return float(given.get(name, usual))
    except (TypeError, ValueError):  # LightGBM refuses it
        return usual


def _is_broken(value: Any) -> bool:
    """Return whether a value begins like a number and is none, e.g. ``80%``: LightGBM refuses it, whatever acts."""
    return isinstance(value, str) and value[:1].isdigit() and number_in(value) is None


def _is_on(given: Given, name: str) -> bool:
    return str(given.get(name, False)).lower() in ("true", "1", "+")


def _strategy(given: Given) -> str:
    boosting = str(given.get("boosting", "gbdt"))
    return "goss" if boosting == "goss" else str(given.get("data_sample_strategy", "bagging"))


def _bags(given: Given) -> bool:
    return _number(given, "bagging_freq", 0) > 0 and _strategy(given) == "bagging"


def _is_of_classes(given: Given) -> bool:
    return str(given["objective"]).startswith("multiclass")


def _draws(given: Given, *names: str) -> bool:
    return any(_number(given, name, 1) < 1 for name in names)


def _learns(*objectives: str) -> Callable[[Given, Any], bool]:
    return lambda given, _: given["objective"] in objectives


SHARES = ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
FEATURES = ("feature_fraction", "feature_fraction_bynode")
DROPPING = ("drop_rate", "max_drop", "skip_drop", "xgboost_dart_mode", "uniform_drop", "drop_seed")
CATEGORIES = ("cat_l2", "cat_smooth", "max_cat_threshold", "max_cat_to_onehot", "min_data_per_group")
PENALTIES = ("cegb_penalty_split", "cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled")
RANKINGS = ("lambdarank", "rank_xendcg")
PARTNERS: tuple[tuple[Sequence[str], str, str, Callable[[Given, Any], bool]], ...] = (
    (
        (*SHARES, "bagging_seed"),
        "rows are drawn only with trainer.params.bagging_freq, which defaults to 0",
        "Draw rows in each round: +trainer.params.bagging_freq=1",
        lambda given, _: _bags(given),
    ),
    (
        ("bagging_freq",),
        "rows are drawn only with trainer.params.bagging_fraction, which defaults to 1",
        "Set the share of rows to draw: +trainer.params.bagging_fraction=0.8",
        lambda given, _: _draws(given, *SHARES),
    ),
    (
        ("top_rate", "other_rate"),
        "it is for trainer.params.data_sample_strategy=goss",
        "+trainer.params.data_sample_strategy=goss uses it",
        lambda given, _: _strategy(given) == "goss",
    ),
    (
        DROPPING,
        "it is for trainer.params.boosting=dart",
        "+trainer.params.boosting=dart uses it",
        lambda given, _: given.get("boosting") == "dart",
    ),
    (
        ("linear_lambda",),
        "it is for trainer.params.linear_tree=true",
        "+trainer.params.linear_tree=true uses it",
        lambda given, _: _is_on(given, "linear_tree"),
    ),
    (
        ("extra_seed",),
        "it is for trainer.params.extra_trees=true",
        "+trainer.params.extra_trees=true uses it",
        lambda given, _: _is_on(given, "extra_trees"),
    ),
    (
        ("feature_fraction_seed",),
        "all features are used",
        "Draw some of them: +trainer.params.feature_fraction=0.8",
        lambda given, _: _draws(given, *FEATURES),
    ),
    (
        ("monotone_penalty", "monotone_constraints_method"),
        "there are no trainer.params.monotone_constraints",
        "Set them, or leave it out",
        lambda given, _: bool(given.get("monotone_constraints")),
    ),
    (
        ("num_grad_quant_bins", "quant_train_renew_leaf", "stochastic_rounding"),
        "it is for trainer.params.use_quantized_grad=true",
        "+trainer.params.use_quantized_grad=true uses it",
        lambda given, _: _is_on(given, "use_quantized_grad"),
    ),
    (
        ("cegb_tradeoff",),
        "there is no penalty to multiply",
        "Set one: +trainer.params.cegb_penalty_split=0.1",
        lambda given, _: any(given.get(name) for name in PENALTIES),
    ),
    (
        ("multi_error_top_k",),
        "it is for trainer.params.metric=multi_error",
        "+trainer.params.metric=multi_error uses it",
        # Without a metric, several classes have this one.
        lambda given, _: "multi_error" in str(given.get("metric", "multi_error")) and _is_of_classes(given),
    ),
    (
        ("eval_at", "label_gain"),
        "it is for a ranking",
        "Leave it out",
        lambda given, _: given["objective"] in RANKINGS or "ndcg" in str(given.get("metric")),
    ),
    (CATEGORIES, "no feature is categorical", "Leave it out", lambda _, info: bool(info.categories)),
    *(
        (names, f"it is for the objectives {', '.join(objectives)}", "Leave it out", _learns(*objectives))
        for names, objectives in (
            (("alpha",), ("huber", "quantile")),
            (("fair_c",), ("fair",)),
            (("poisson_max_delta_step",), ("poisson",)),
            (("tweedie_variance_power",), ("tweedie",)),
            (("scale_pos_weight", "is_unbalance"), ("binary", "multiclassova")),
            (("sigmoid",), ("binary", "multiclassova", "lambdarank")),
            (("lambdarank_truncation_level", "lambdarank_norm"), ("lambdarank",)),
            (("objective_seed",), ("rank_xendcg",)),
            (("bagging_by_query", "lambdarank_position_bias_regularization"), RANKINGS),
        )
    ),
)
"""Names of parameters, why they have no effect, what to use instead, and whether they have one."""


def partner_rules() -> tuple[Rule, ...]:
    """Return the rules of parameters that act only with another one."""
    return tuple(
        Need(
            met=lambda way: way.info is None,
            otherwise=otherwise,
            instead=instead,
            keys=("trainer.params", "dataset"),
            of_rows=True,
        ).of_found(lambda way, names=names, acts=acts: _idle(way, names, acts))  # type: ignore[misc]
        for names, otherwise, instead, acts in PARTNERS
    )


def _idle(way: Way, names: Sequence[str], acts: Callable[[Given, Any], bool]) -> Iterator[str]:
    """Yield the keys of parameters without an effect; of all parameters before the rows are read."""
    params = way.trainer.params
    if way.info is None:
        yield from (f"trainer.params.{name}" for name in params)
        return
    from rtrain.trainers.lightgbm.names import main_name, main_objective, usual_objective

    given = {main_name(name) or name: value for name, value in params.items()}
    given["objective"] = main_objective(str(given.get("objective", usual_objective(way.info)["objective"])))
    if way.trainer.objective_function is None and not acts(given, way.info):
        found = [name for name in params if (main_name(name) or name) in names]
        yield from (f"trainer.params.{name}" for name in found if not _is_broken(params[name]))
