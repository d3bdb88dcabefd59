from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression

from rtrain.errors import DatasetError


@pytest.mark.parametrize(
    ("name", "shape", "num_classes", "num_rows"),
    [
        ("iris", (4,), 3, 150),
        ("wine", (13,), 3, 178),
        ("breast_cancer", (30,), 2, 569),
        ("load_digits", (64,), 10, 1797),
        ("diabetes", (10,), None, 442),
        ("make_moons", (2,), 2, 100),
    ],
)
def test_data_sets_by_name(load, name, shape, num_classes, num_rows):
    info = load("sklearn", name=name).info
    assert info.input_shape == shape
    assert info.num_classes == num_classes
    assert sum(info.num_rows.values()) == num_rows
    assert len(info.feature_names) == shape[0]


def test_rows_and_names_are_those_of_scikit_learn(load):
    dataset = load("sklearn", name="iris", split={"test": 0})
    bunch = load_iris()
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"], bunch.data)
    np.testing.assert_array_equal(dataset.splits["train"].columns["y"], bunch.target)
    assert dataset.info.class_names == ("setosa", "versicolor", "virginica")
    assert dataset.info.feature_names == tuple(bunch.feature_names)
    assert dataset.info.dtype == "float64"


def test_generators_take_arguments_and_the_seed(load):
    keys = {"name": "make_regression", "arguments": {"n_samples": 50, "n_features": 3}, "split": {"test": 0}}
    x, _ = make_regression(50, 3, random_state=7)
    np.testing.assert_array_equal(load("sklearn", **keys, seed=7).splits["train"].columns["x"], x)


def test_one_of_several_targets(load):
    assert load("sklearn", name="linnerud", target="Waist").info.task == "regression"
    with pytest.raises(DatasetError, match=r"several targets: Weight, Waist, Pulse"):
        load("sklearn", name="linnerud")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"name": "irsi"}, r"did you mean: dataset\.name=iris"),
        ({"name": "california_housing"}, "downloads"),
        ({"name": "files"}, "no data set 'files'"),
        ({"name": "make_moons", "arguments": {"samples": 3}}, r"unexpected keyword argument|It takes: n_samples"),
        ({"name": "make_moons", "arguments": {"n_samples": -3}}, "n_samples"),
        ({"name": "iris", "arguments": {"n_samples": 3}}, "iris takes none"),
        ({"name": "iris", "target": "a"}, "a single target"),
    ],
)
def test_mistakes_are_explained(load, keys, message):
    with pytest.raises(DatasetError, match=message):
        load("sklearn", **keys)
