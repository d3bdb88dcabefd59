"""Names below ``trainer.params``: which the library takes, which belong elsewhere, and what other tools call them."""

from __future__ import annotations

import pytest

from rtrain.config.diagnostics.meant.keys.schema_keys import all_keys
from rtrain.config.diagnostics.meant.keys.words import words_of
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.trainers.lightgbm import params as lightgbm
from rtrain.trainers.loops.boosting.params import check_names
from rtrain.trainers.xgboost import params as xgboost

TRAINERS = {
    "xgboost": (xgboost.known_names, lambda: xgboost.OURS),
    "lightgbm": (lightgbm.all_names, lightgbm.ours),
}
SELDOM = {"gpu_device_id", "gpu_device_id_list", "num_gpu", "time_out", "num_class", "num_classes"}
"""Parameters that are seldom what is meant where they are typed elsewhere; the data say how many classes there are."""


def refusal(trainer, name, value=None):
    """Return what the check says of a parameter; an empty text if it takes it."""
    known, ours = TRAINERS[trainer]
    try:
        check_names({name: value}, known(), ours(), schemas().trainer[trainer])
    except ConfigError as error:
        return str(error)
    return ""


@pytest.fixture(params=TRAINERS)
def trainer(request):
    return request.param


@pytest.mark.parametrize(
    ("trainer", "name", "value", "hint"),
    [
        ("xgboost", "num_leaves", 31, "did you mean: trainer.params.max_leaves"),
        ("xgboost", "boosting_type", "gbdt", "did you mean: trainer.params.booster=gbtree"),
        ("xgboost", "metric", "binary_logloss", "did you mean: trainer.params.eval_metric=logloss"),
        ("xgboost", "max_dept", 3, "did you mean: trainer.params.max_depth"),
        ("xgboost", "num_iterations", 9, "did you mean: trainer.num_boost_round"),
        ("xgboost", "num_trees", 9, "Use trainer.num_boost_round instead."),
        (
            "xgboost",
            "min_data_in_leaf",
            9,
            "XGBoost does not count the rows of a leaf: trainer.params.min_child_weight",
        ),
        ("xgboost", "pred_leaf", True, "rtrain predict writes them"),
        ("xgboost", "nonsense_of_mine", 1, "The library's documentation lists all of them."),
        ("lightgbm", "booster", "gbtree", "did you mean: trainer.params.boosting=gbdt"),
        ("lightgbm", "gamma", 1, "did you mean: trainer.params.min_gain_to_split"),
        ("lightgbm", "num_tree", 9, "Use trainer.num_boost_round instead."),
        ("lightgbm", "save_period", 9, "Use run.checkpoint.every_steps instead."),
        ("lightgbm", "model_out", "a.txt", "each checkpoint contains the model"),
        ("lightgbm", "is_training_metric", True, "trainer.eval_splits=[train,val]"),
        ("lightgbm", "task", "train", "the command is the task: rtrain fit trains"),
        ("lightgbm", "sample_weight", "w", "Use dataset.weight instead."),
    ],
)
def test_a_name_that_does_not_belong_leads_to_what_is_meant(trainer, name, value, hint):
    found = refusal(trainer, name, value)
    assert found.startswith(f"trainer.params.{name}")
    assert hint in found


@pytest.mark.parametrize("name", ["predict_leaf_index", "contrib", "pred_early_stop", "output_result", "convert_model"])
def test_what_lightgbm_ignores_in_training_is_refused(name):
    assert refusal("lightgbm", name, True).startswith(f"trainer.params.{name} has no effect in training.\n")


@pytest.mark.parametrize("name", ["name", "num_feature", "num_target", "updater_seq"])
def test_what_a_model_of_xgboost_says_of_itself_is_no_parameter(name):
    assert "there is no such parameter" in refusal("xgboost", name, 1)


def test_words_of_other_tools_take_no_parameter_of_the_library_away(trainer):
    known, ours = TRAINERS[trainer]
    conf = schemas().trainer[trainer]
    accepted = {name for name in known() if name not in ours()}
    taken = {}
    for name in accepted - SELDOM:
        found = [one for words in words_of(conf) if (one := words.meaning(name, None, "trainer"))]
        if any(one.sentence or main(trainer, one.key) != main(trainer, name) for one in found):
            taken[name] = found
    assert not taken


def main(trainer, name):
    """Return the library's first name of a parameter, which may be a full key."""
    own = name.removeprefix("trainer.params.")
    return lightgbm.main_name(own) if trainer == "lightgbm" else xgboost.ALIASES.get(own, own)


def test_what_rtrain_sets_leads_to_a_key_or_a_sentence(trainer):
    conf = schemas().trainer[trainer]
    known = {key for dataset in ("csv", "digits") for key in all_keys(schemas(), trainer, dataset)}
    lost = [
        name
        for name, key in TRAINERS[trainer][1]().items()
        if key not in known
        and not any((one := words.meaning(name, None, "trainer")) and one.sentence for words in words_of(conf))
    ]
    assert not lost


def test_each_key_that_the_words_lead_to_exists(trainer):
    conf = schemas().trainer[trainer]
    known = {*all_keys(schemas(), trainer), *(f"trainer.params.{name}" for name in TRAINERS[trainer][0]())}
    keys = {f"trainer.{one.partition('=')[0]}" for words in words_of(conf) for one in words.keys.values()}
    assert not keys - known
    refused = [key for key in keys if ".params." in key and refusal(trainer, key.rpartition(".")[2])]
    assert not refused
