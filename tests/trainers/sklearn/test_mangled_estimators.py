"""No estimator file of somebody else's ends the process: compiled code gets no indices that scikit-learn wouldn't."""

from __future__ import annotations

import copy
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from changed_files import used_without_a_crash
from mangled import makes
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier, VotingRegressor
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_array

from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.content import DATA, from_data, load

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 4)), np.arange(60) % 2
PROGRAM = Path(__file__).with_name("mangled.py")


def with_attributes(estimator, **values):
    changed = copy.deepcopy(estimator)
    vars(changed).update(values)
    return changed


TREE = DecisionTreeClassifier(max_depth=2).fit(X, Y)
BOOSTED = HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]).fit(np.c_[X[:, :3], Y], Y)
ORDERED = BOOSTED._preprocessor
VOTING = VotingRegressor([("a", DecisionTreeRegressor())]).fit(X, Y)
ONE_VS_REST = OneVsRestClassifier(LinearSVC()).fit(X, Y)
SGD = SGDClassifier().partial_fit(X, Y, classes=[0, 1])


def by_category():
    changed = copy.deepcopy(BOOSTED)
    for predictor in (one for step in changed._predictors for one in step):
        predictor.nodes["is_categorical"] = 1
        predictor.nodes["feature_idx"] = 2
        predictor.nodes["bitset_idx"] = 0
        predictor.raw_left_cat_bitsets = np.zeros((1, 8), "uint32")
    return changed


def masked():
    changed = copy.deepcopy(BOOSTED)
    predictor = changed._predictors[0][0]
    predictor.nodes["feature_idx"] = 10**9
    predictor.nodes = np.ma.MaskedArray(predictor.nodes, mask=np.ones(predictor.nodes.shape, bool))
    return changed


def drawn(generator, **values):
    state = generator.state
    state["state"].update({key: value for key, value in values.items() if key in state["state"]})
    state.update({key: value for key, value in values.items() if key in state})
    generator.state = state
    return generator


def one_vs_rest(**values):
    return with_attributes(ONE_VS_REST, estimators_=[with_attributes(ONE_VS_REST.estimators_[0], **values)])


HOSTILE = {
    "a tree alone": lambda: TREE.tree_,
    "a tree in a vote": lambda: with_attributes(VOTING, estimators_=[TREE.tree_]),
    "a tree in a pipeline": lambda: make_pipeline(StandardScaler(), TREE.tree_),
    "a tree in an attribute": lambda: with_attributes(TREE, spare=copy.deepcopy(TREE.tree_)),
    "a part of boosting in a vote": lambda: with_attributes(VOTING, estimators_=[BOOSTED._predictors[0][0]]),
    "bins in a pipeline": lambda: make_pipeline(BOOSTED._bin_mapper, TREE),
    "no list of rows": lambda: [TREE],
    "an optimizer": lambda: TREE.tree_.__getstate__(),
    "a hidden check": lambda: with_attributes(TREE, _validate_X_predict=partial(check_array, dtype="float32")),
    "a hidden property": lambda: with_attributes(make_pipeline(StandardScaler()), n_features_in_=4),
    "a hidden table": lambda: with_attributes(SGD, loss_functions={}),
    "a method without a class's": lambda: with_attributes(TREE, __sklearn_is_fitted__=partial(np.exp)),
    "a function as a member": lambda: with_attributes(VOTING, estimators_=[partial(np.exp)]),
    "a function in arguments": lambda: FunctionTransformer(np.exp, kw_args={"where": partial(np.exp)}),
    "a vote's hidden method": lambda: with_attributes(VOTING, _predict=np.exp),
    "hidden bitsets": lambda: with_attributes(
        BOOSTED, _bin_mapper=with_attributes(BOOSTED._bin_mapper, make_known_categories_bitsets=partial(np.exp))
    ),
    "categories that are none": by_category,
    "indices behind a mask": masked,
    "fewer columns": lambda: with_attributes(
        BOOSTED, _preprocessor=with_attributes(ORDERED, transformers_=ORDERED.transformers_[:1])
    ),
    "another preprocessor": lambda: with_attributes(BOOSTED, _preprocessor=FunctionTransformer()),
    "a forest of others": lambda: with_attributes(
        RandomForestClassifier(1).fit(X, Y), estimators_=[DummyClassifier().fit(X, Y)]
    ),
    "a tree that counts no features": lambda: with_attributes(TREE, n_features_in_=np.array([4])),
    "no weights": lambda: with_attributes(SGD, coef_=np.zeros((0, 4)), _standard_coef=np.zeros((0, 4))),
    "no weights of a regression": lambda: with_attributes(SGDRegressor().partial_fit(X, Y), coef_=np.zeros(0)),
    "many results a row": lambda: one_vs_rest(intercept_=np.ones(100_000)),
    "many rows": lambda: one_vs_rest(coef_=np.zeros((1, 4)), intercept_=np.ones((50, 60))),
    "many rows inside": lambda: VotingClassifier([("a", one_vs_rest(intercept_=np.ones(9)))]),
    "a position": lambda: LogisticRegression(
        random_state=np.random.RandomState(drawn(np.random.MT19937(0), pos=10**9))
    ),
    "a position before": lambda: LogisticRegression(
        random_state=np.random.RandomState(drawn(np.random.MT19937(0), pos=-(10**9)))
    ),
    "a position of a buffer": lambda: LogisticRegression(
        random_state=np.random.Generator(drawn(np.random.Philox(0), buffer_pos=-(10**9)))
    ),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_what_would_lead_out_of_memory_is_refused(tmp_path, make):
    from skops.io import dumps

    (tmp_path / DATA).write_bytes(dumps(make()))
    with pytest.raises(CheckpointError):
        load(tmp_path, trusted=False)


@pytest.mark.parametrize("fitted", [TREE, BOOSTED, VOTING, ONE_VS_REST, SGD], ids=lambda one: type(one).__name__)
def test_what_scikit_learn_makes_is_read(fitted):
    from skops.io import dumps

    rows = np.c_[X[:, :3], Y]
    np.testing.assert_array_equal(from_data(dumps(fitted)).predict(rows), fitted.predict(rows))


@pytest.mark.slow
def test_changed_files_of_all_listed_estimators_are_refused_or_used_without_a_crash():
    assert used_without_a_crash(PROGRAM, seed=0, number=2) > len(makes())


@pytest.mark.slow
def test_many_changed_files_are_refused_or_used_without_a_crash():
    for seed in range(max(1, int(os.environ.get("RTRAIN_TEST_FAULTS", "10")) // 10)):
        assert used_without_a_crash(PROGRAM, seed=100 + seed, number=50) > 0
