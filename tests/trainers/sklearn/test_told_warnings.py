"""What scikit-learn warns of is a line that names the key, once."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rtrain.trainers.sklearn.told_warnings import told_warnings

PIPELINE = {"steps": [["scale", {}], ["last", {"_target_": "LogisticRegression", "l1_ratio": 0.5, "penalty": "l2"}]]}


def lines(node, *raised):
    told = []
    with told_warnings(node, told.append):
        for one in raised:
            warnings.warn(one, stacklevel=1)
    return told


def test_a_parameter_that_is_not_used_is_named_by_its_key():
    told, node = [], {"_target_": "sklearn.linear_model.LogisticRegression", "l1_ratio": 0.5, "penalty": "l2"}
    with told_warnings(node, told.append):
        LogisticRegression(l1_ratio=0.5, penalty="l2").fit([[0.0], [1.0]], [0, 1])
    assert any(line.startswith("trainer.estimator.l1_ratio: l1_ratio parameter is only used when") for line in told)


def test_a_line_comes_once_and_names_the_estimator_where_no_argument_is_mentioned():
    failed = ConvergenceWarning("it failed\nto converge")
    assert lines({"C": 1}, failed, failed) == ["trainer.estimator: it failed to converge"]


def test_an_argument_of_a_part_has_its_whole_key():
    assert lines(PIPELINE, ConvergenceWarning("set l1_ratio")) == ["trainer.estimator.steps.1.1.l1_ratio: set l1_ratio"]


def test_warnings_of_others_are_left_alone():
    with pytest.warns(UserWarning, match="mine"):
        assert lines({}, "mine") == []
