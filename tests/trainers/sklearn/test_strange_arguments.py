"""What a checkpoint holds is learnt on with the arguments of the config, and never fitted anew."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
from sklearn import linear_model, multioutput, naive_bayes, pipeline, preprocessing
from sklearn.metrics._scorer import _PassthroughScorer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.arguments import take_arguments
from rtrain.trainers.sklearn.estimator_file.content import DATA, from_data, written
from rtrain.trainers.sklearn.estimator_file.objects import parts_of
from rtrain.trainers.sklearn.learner import SklearnLearner

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 4)).astype("float32"), RNG.integers(0, 3, 60)
INFO = DatasetInfo(
    name="made",
    task="classification",
    input_shape=(4,),
    num_classes=3,
    num_rows={"train": 60},
    fingerprint="",
    memory="resident",
    memory_reason="",
)


def cached(folder):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.SGDClassifier(), memory=str(folder))


def test_a_loaded_estimator_is_not_fitted(tmp_path):
    from skops.io import dumps

    (tmp_path / DATA).write_bytes(dumps(cached(tmp_path / "cache").fit(X, Y)))
    before = sorted(tmp_path.rglob("*"))
    built = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.SGDClassifier())
    learner = SklearnLearner(built, INFO, whole=True, num_threads=1)
    learner.load(tmp_path)
    assert learner.estimator is not built
    assert learner.estimator.memory is None
    learner.train_step(Batch(X, Y, 60), 0)
    assert learner.estimator is built
    assert sorted(tmp_path.rglob("*")) == before


def test_no_estimator_read_as_data_keeps_a_cache(tmp_path):
    nested = OneVsRestClassifier(cached(tmp_path)).fit(X, Y)
    name, content = written(nested, X, 3)
    assert name == DATA
    found = from_data(content)
    assert found.estimator.memory is None
    assert [one.memory for one in found.estimators_] == [None] * 3


@pytest.mark.parametrize(
    ("loaded", "built", "key"),
    [
        (linear_model.SGDClassifier(alpha=7.0), linear_model.SGDClassifier(), "alpha"),
        (OneVsRestClassifier(linear_model.SGDClassifier(alpha=7.0)), None, "estimator__alpha"),
        (
            multioutput.MultiOutputClassifier(naive_bayes.GaussianNB(var_smoothing=7.0)),
            None,
            "estimator__var_smoothing",
        ),
    ],
)
def test_arguments_are_those_of_the_config(loaded, built, key):
    y = np.stack([Y, Y], 1) if isinstance(loaded, multioutput.MultiOutputClassifier) else Y
    loaded.fit(X, y)
    usual = loaded.get_params()[key.partition("__")[0]]
    built = built or type(loaded)(type(usual)())
    take_arguments(loaded, built)
    assert loaded.get_params()[key] == built.get_params()[key]
    for one in getattr(loaded, "estimators_", ()):
        assert 7.0 not in one.get_params().values()


def test_parts_that_the_config_does_not_name_are_refused():
    loaded = OneVsRestClassifier(naive_bayes.GaussianNB()).fit(X, Y)
    with pytest.raises(CheckpointError):
        take_arguments(loaded, OneVsRestClassifier(linear_model.SGDClassifier()))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("num_classes", [None, 2, 3])
def test_averages_are_as_long_as_the_weights(average, num_classes):
    from skops.io import dumps

    kind = linear_model.SGDRegressor if num_classes is None else linear_model.SGDClassifier
    y = Y % (num_classes or 3)
    fitted = kind(average=average).fit(X, y)
    from_data(dumps(fitted)).partial_fit(X, y)
    for name in ("_standard_coef", "_average_coef", "_standard_intercept", "_average_intercept"):
        for strange in (np.zeros((7, 1)), np.zeros(0), 1.0):
            changed = copy.copy(fitted)
            setattr(changed, name, strange)
            with pytest.raises(CheckpointError):
                from_data(dumps(changed))


HIDES = [
    lambda tree: partial(np.tanh, tree),
    lambda tree: partial(np.tanh, where=tree),
    lambda tree: partial(np.tanh, [{"a": (tree,)}]),
    lambda tree: slice(tree),
    lambda tree: slice(0, 1, tree),
    lambda tree: [{"a": (tree,)}],
    lambda tree: np.array([tree, None], dtype=object),
    lambda tree: np.ma.MaskedArray(np.array([tree, None], dtype=object), mask=[True, False]),
]


@pytest.mark.parametrize("hide", HIDES)
def test_a_tree_is_found_wherever_it_hides(hide):
    fitted = preprocessing.FunctionTransformer(kw_args={"a": hide(DecisionTreeClassifier(max_depth=2).fit(X, Y))})
    kinds = [type(one) for one in parts_of(fitted)]
    assert DecisionTreeClassifier in kinds


def test_a_partial_is_of_a_function():
    from skops.io import dumps

    from_data(dumps(preprocessing.FunctionTransformer(partial(np.tanh))))
    scorer = _PassthroughScorer(DecisionTreeClassifier())
    with pytest.raises(CheckpointError):
        from_data(dumps(preprocessing.FunctionTransformer(partial(scorer, X))))
