"""Predictions of a loop beside labels that the user names: classes or numbers, as the values show."""

import numpy as np
import pytest

from rtrain.errors import PredictionError
from rtrain.evaluation import metrics_of
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.prediction.raw_labels import Labelled


def measured(predicted, labels):
    return metrics_of(UNKNOWN, [Labelled(np.asarray(predicted), np.asarray(labels))])


@pytest.mark.parametrize(
    ("predicted", "labels"),
    [
        (["a", "b", "b", "a"], ["a", "b", "a", "a"]),
        ([0, 1, 1, 0], [0, 1, 0, 0]),
        ([3, 7, 7, 3], [3, 7, 3, 3]),
        ([-1, 1, 1, -1], [-1.0, 1.0, -1.0, -1.0]),
        ([True, False, False, True], [True, False, True, True]),
        ([1, 0, 0, 1], [True, False, True, True]),
        ([b"a", b"b", b"b", b"a"], ["a", "b", "a", "a"]),
        ([0.2, 0.9, 0.8, 0.1], [0, 1, 0, 0]),
        ([[0.2], [0.9], [0.8], [0.1]], [0, 1, 0, 0]),
        ([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]], [0, 1, 0, 0]),
    ],
)
def test_classes_are_compared_as_classes(predicted, labels):
    assert measured(predicted, labels)["accuracy"] == 0.75


@pytest.mark.parametrize(
    ("predicted", "labels"),
    [([1.5, 2.5], [1, 3]), ([1.5, 2.5], [1.0, 3.0]), ([1, 3], [1.5, 3.5]), ([0.5, 1.5], [0, 2])],
)
def test_other_numbers_are_a_regression(predicted, labels):
    found = measured(predicted, labels)
    assert found["mae"] == 0.5
    assert "accuracy" not in found


def test_parts_are_measured_together_and_own_metrics_are_means():
    parts = [Labelled(np.array(["a"]), np.array(["a"]), {"own": 1.0})]
    parts += [Labelled(np.array(["b", "b", "a"]), np.array(["b", "b", "b"]), {"own": 3.0})]
    found = metrics_of(UNKNOWN, parts)
    assert (found["accuracy"], found["own"]) == (0.75, 2.5)


@pytest.mark.parametrize(
    ("predicted", "labels"),
    [
        ([0.5, 1.5], ["a", "b"]),
        ([[0.5, 0.5]] * 2, ["a", "b"]),
        ([[0.5, 0.5]] * 2, [1, 2]),
        ([0, 1], ["a", "b"]),
        (["a", "b"], [0, 1]),
    ],
)
def test_what_nothing_tells_apart_is_refused(predicted, labels):
    with pytest.raises(PredictionError, match="the order of the classes is unknown") as caught:
        measured(predicted, labels)
    assert "metrics(batch)" in caught.value.hint


def test_a_name_that_no_label_has_is_refused_by_itself():
    with pytest.raises(PredictionError, match="returned 'yes', none of which is a label: labels are 'a', 'b'"):
        measured(["yes", "yes"], ["a", "b"])


def test_logits_are_no_probabilities():
    with pytest.raises(PredictionError, match="invalid probabilities"):
        measured([[3.0, -1.0], [0.5, 2.0]], [0, 1])
