"""Arguments that name classes, which the estimator knows by number alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn_runs import fit, make_conf, small_dataset

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.testing.workers import newest
from rtrain.trainers.sklearn.build import build_estimator
from rtrain.trainers.sklearn.class_names import named
from rtrain.trainers.sklearn.predictor import load_predictor

LOGISTIC = {"_target_": "sklearn.linear_model.LogisticRegression"}


def built(node, names, **info):
    data = small_dataset(class_names=names, num_classes=len(names), **info)
    path = node.pop("_target_").removeprefix("sklearn.")
    return build_estimator(make_conf(path, **node), data.info, 0, Builder())


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (("ham", "other", "spam"), {"spam": 30, "ham": 2}),
        (("1", "2", "3"), {1: 2, 3: 30}),  # one of them would be another class by its number
        (("-1", "5", "12"), {"12": 30.0, -1: 2}),
        (("0.5", "1", "2"), {0.5: 2, 2.0: 30}),
    ],
    ids=str,
)
def test_weights_are_those_of_the_classes_that_are_named(tmp_path, names, weights):
    conf, data = make_conf("linear_model.LogisticRegression", class_weight=weights), small_dataset(class_names=names)
    fit(tmp_path, conf, data)
    rows = data.splits["train"].columns
    by_hand = LogisticRegression(class_weight={0: 2, 2: 30}, random_state=0).fit(rows["x"], rows["y"])
    found = load_predictor(newest(tmp_path, conf, data)).predict(rows["x"])
    np.testing.assert_allclose(found, by_hand.predict_proba(rows["x"]), rtol=1e-5)


@pytest.mark.parametrize(
    ("node", "key", "value"),
    [
        (
            {"_target_": "sklearn.pipeline.Pipeline", "steps": [["last", {**LOGISTIC, "class_weight": {True: 9}}]]},
            "last__class_weight",
            {1: 9},
        ),
        (
            {
                "_target_": "sklearn.model_selection.GridSearchCV",
                "estimator": LOGISTIC,
                "param_grid": [{"class_weight": [None, "balanced", {"true": 9}], "C": [1]}],
            },
            "param_grid",
            [{"class_weight": [None, "balanced", {1: 9}], "C": [1]}],
        ),
        (
            {
                "_target_": "sklearn.model_selection.FixedThresholdClassifier",
                "estimator": LOGISTIC,
                "pos_label": False,
            },
            "pos_label",
            0,
        ),
    ],
    ids=["pipeline", "search", "threshold"],
)
def test_classes_are_named_at_any_depth(node, key, value):
    assert built(dict(node), ("false", "true")).get_params()[key] == value


def test_a_class_that_the_data_has_not_is_named():
    with pytest.raises(ConfigError, match=r"class_weight: small has no class 'spm'\.\ndid you mean: spam"):
        built({**LOGISTIC, "class_weight": {"spm": 3}}, ("ham", "spam"))
    with pytest.raises(ConfigError, match=r"small has no class '0'\.\navailable: ham, spam"):
        built({**LOGISTIC, "class_weight": {0: 3, 1: 1}}, ("ham", "spam"))


def test_what_a_search_has_found_names_classes_as_the_data_does():
    info = small_dataset(class_names=("ham", "spam"), num_classes=2).info
    assert named("lr__class_weight", {1: 9}, info) == {"spam": 9}
    assert named("class_weight", "balanced", info) == "balanced"
    assert named("pos_label", 0, info) == "ham"
    assert named("C", 1, info) == 1
