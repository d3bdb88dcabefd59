"""Parameters of boosted trees that do nothing in a config are refused by name; the libraries confirm that."""

import lightgbm
import numpy as np
import pytest
from test_idle_of_rows import notes_with_rows

from rtrain.errors import ConfigError
from rtrain.trainers.lightgbm.partners import PARTNERS

DRAWS = np.random.default_rng(0)
ROWS = DRAWS.normal(size=(200, 4))
ROWS[:, 3] = DRAWS.integers(0, 5, 200)
TARGETS = {
    "regression": np.abs(ROWS[:, 0] + ROWS[:, 3] + 0.1 * DRAWS.normal(size=200)),
    "binary": (ROWS[:, 0] + 0.5 * ROWS[:, 1] > 0).astype(float),
    "multiclass": ROWS[:, 3] % 3,
    "lambdarank": ROWS[:, 3] % 3,
}
VALUES = {
    "objective_seed": 5,
    "bagging_seed": 5,
    "bagging_freq": 2,
    "monotone_constraints_method": "advanced",
    "tweedie_variance_power": 1.3,
    "eval_at": [3],
    "label_gain": [0, 2, 4],
    "num_grad_quant_bins": 8,
    "stochastic_rounding": False,
    "multi_error_top_k": 2,
}
"""A value that is not the usual one, where 0.3 would be none."""
WHOLE = ("drop_seed", "extra_seed", "feature_fraction_seed", "max_cat_threshold", "max_cat_to_onehot", "max_drop")
WHOLE = (*WHOLE, "min_data_per_group", "lambdarank_truncation_level")
SWITCHES = (
    "bagging_by_query",
    "quant_train_renew_leaf",
    "xgboost_dart_mode",
    "uniform_drop",
    "is_unbalance",
    "lambdarank_norm",
)
NAMES = [name for names, *_ in PARTNERS for name in names]


def value_of(name):
    if name in SWITCHES:
        return name != "lambdarank_norm"
    return VALUES.get(name, 3 if name in WHOLE else 0.3)


def trees(objective, **params):
    data = lightgbm.Dataset(
        ROWS,
        TARGETS[objective],
        group=[20] * 10 if objective == "lambdarank" else None,
        params={"min_data_in_leaf": 2, "verbosity": -1},
    )
    given = {"objective": objective, "verbosity": -1, "num_threads": 1, "seed": 1, "min_data_in_leaf": 2, **params}
    if objective == "multiclass":
        given["num_class"] = 3
    return lightgbm.train(given, data, 3).model_to_string().partition("\nparameters:")[0]


@pytest.mark.parametrize("name", NAMES)
def test_lightgbm_ignores_it_where_it_is_refused(name):
    objective = "multiclass" if name in ("sigmoid", "scale_pos_weight", "is_unbalance") else "regression"
    assert trees(objective, **{name: value_of(name)}) == trees(objective)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_refused_by_name(name):
    dataset = "sklearn" if name in ("sigmoid", "scale_pos_weight", "is_unbalance") else "diabetes"
    words = ("dataset=sklearn", "dataset.name=diabetes") if dataset == "diabetes" else ("dataset=sklearn",)
    with pytest.raises(ConfigError, match=f"trainer.params.{name} has no effect"):
        notes_with_rows("lightgbm", (*words, f"++trainer.params.{name}={value_of(name)}"))


@pytest.mark.parametrize(
    "words",
    [
        ("subsample=0.5", "subsample_freq=1"),
        ("bagging_fraction=0.5", "bagging_freq=1", "bagging_seed=3"),
        ("data_sample_strategy=goss", "top_rate=0.3"),
        ("boosting=goss", "other_rate=0.3"),
        ("boosting=dart", "drop_rate=0.3", "skip_drop=0.2"),
        ("linear_tree=true", "linear_lambda=0.3"),
        ("feature_fraction=0.5", "feature_fraction_seed=4"),
        ("objective=multiclassova", "sigmoid=2"),
        ("use_quantized_grad=true", "num_grad_quant_bins=8"),
        ("cegb_penalty_split=0.1", "cegb_tradeoff=0.5"),
        ("multi_error_top_k=2",),
    ],
)
def test_beside_its_partner_it_is_taken(words):
    assert notes_with_rows("lightgbm", [f"++trainer.params.{word}" for word in words]) == ()


@pytest.mark.parametrize(
    "words",
    [
        ("rate_drop=0.5",),
        ("scale_pos_weight=2",),
        ("booster=gblinear", "max_depth=3"),
        ("feature_selector=greedy",),
        ("tweedie_variance_power=1.5",),
    ],
)
def test_xgboost_says_what_it_does_not_use(words):
    key = f"trainer.params.{words[-1].partition('=')[0]}"
    with pytest.raises(ConfigError, match=f"{key} has no effect"):
        notes_with_rows("xgboost", [f"++trainer.params.{word}" for word in words])


@pytest.mark.parametrize(
    "words", [("booster=dart", "rate_drop=0.5"), ("eta=0.2", "learning_rate=0.2"), ("max_dept=3",), ("eta=fast",)]
)
def test_what_xgboost_uses_or_refuses_is_left_to_the_check(words):
    assert notes_with_rows("xgboost", [f"++trainer.params.{word}" for word in words]) == ()
