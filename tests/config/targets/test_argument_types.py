"""Arguments of targets are checked against annotations and defaults, wherever these rule a value out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch

from rtrain.config.targets.argument_types import AUTO, example_of, misfit, misfit_inside, parameters_of
from rtrain.config.targets.builder import Builder
from rtrain.errors import TargetError


def parameter(annotation=None, default=None):
    """Return a parameter with an annotation, or with a default alone."""

    def annotated(x: annotation = default): ...

    def bare(x=default): ...

    annotated.__annotations__ = {"x": annotation}
    return parameters_of(bare if annotation is None else annotated)["x"]


NUMBER, WHOLE, FLAG, LIST = "a number", "a whole number", "true or false", "a list"


@pytest.mark.parametrize(
    ("annotation", "value", "wanted"),
    [
        (float, "fast", NUMBER),
        (float, [0.1], NUMBER),
        (float, True, NUMBER),
        (float | torch.Tensor, [0.1], NUMBER),
        (int, "ten", WHOLE),
        (int, 2.5, WHOLE),
        (bool, "maybe", FLAG),
        (bool, 0.9, FLAG),
        (float | None, "fast", NUMBER),
        (float | torch.Tensor, "fast", NUMBER),
        (float | np.ndarray, "fast", NUMBER),
        (int | float, "fast", NUMBER),
        (float | Callable[[int], float], "fast", "a number or a function"),
        (Sequence[int], 1, LIST),
        (Sequence[int], "wide", LIST),
        (list[float], 0.5, LIST),
        (tuple[int, ...], 3, LIST),
        (tuple[int, int] | int, "wide", "a list or a whole number"),
    ],
)
def test_what_can_not_be_is_refused(annotation, value, wanted):
    assert misfit(value, parameter(annotation)) == wanted


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (float, [1, 0.1, None, AUTO, {"_target_": "a.B"}]),
        (int, [1, 2.0, True, None, AUTO]),
        (bool, [True, 0, 1, None]),
        (str, ["a", 5, None]),
        (Any, ["a", 5, [1]]),
        (object, ["a", 5, [1]]),
        (Literal["a", "b"], ["a", 1]),
        (Callable[..., Any] | str, ["relu"]),
        (Sequence[int], [[1, 2], [], None]),
        (Sequence[str], ["ab", ["a"]]),
        (tuple[float, float], [[0.9, 0.99]]),
        (torch.nn.Module, ["relu", 1, [2]]),
        (float | torch.Tensor, [0.1]),
        (torch.Tensor | None, [[0.1], None]),
        (dict[str, int], [{"a": 1}]),
    ],
)
def test_what_may_be_passes(annotation, values):
    assert [misfit(value, parameter(annotation)) for value in values] == [None] * len(values)


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (Sequence[int], [64, "big"], ((1,), WHOLE)),
        (list[int], [64, 0.5], ((1,), WHOLE)),
        (int | Sequence[int], [64, "big"], ((1,), WHOLE)),
        (Sequence[int] | None, [None], ((0,), WHOLE)),
        (tuple[float, float], [0.9, "slow"], ((1,), NUMBER)),
        (tuple[float, float], [0.9], ((), "a list of 2")),
        (tuple[float | torch.Tensor, float | torch.Tensor], ["x", 1], ((0,), NUMBER)),
        (Sequence[Sequence[int]], [[1], [2, "x"]], ((1, 1), WHOLE)),
        (list[list[int]], [[1], 2], ((1,), LIST)),
        (Sequence[float | Sequence[float]], [0.5, ["x"]], ((1, 0), NUMBER)),
    ],
)
def test_an_element_that_can_not_be_is_named(annotation, value, found):
    assert misfit(value, parameter(annotation)) is None
    assert misfit_inside(value, parameter(annotation)) == found


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (Sequence[int], [[], [1, 2.0], [AUTO], [{"_target_": "a.B"}], "wide", 1, None]),
        (Sequence[str], [["a", 5]]),
        (Sequence[int | str], [["a", 5]]),
        (list[Any], [["a", None]]),
        (list, [["a", None]]),
        (Any, [["a", None]]),
        (tuple[int | None, int | None], [[None, 1]]),
        (tuple[int, int] | tuple[int, int, int], [[1, 2], [1, 2, 3]]),
        (tuple[int, ...], [[], [1, 2, 3]]),
        (Sequence[int] | Sequence[str], [["a"], [1]]),
        (Sequence[int] | torch.Tensor, [["a"]]),
        (dict[str, int], [["a"]]),
    ],
)
def test_elements_that_may_be_pass(annotation, values):
    assert [misfit_inside(value, parameter(annotation)) for value in values] == [None] * len(values)


def test_a_default_of_numbers_rules_texts_in_its_place_out():
    assert misfit_inside(["slow", 0.9], parameter(default=(0.9, 0.99))) == ((0,), NUMBER)
    assert misfit_inside(["slow"], parameter(default=(0.9, 0.99)), by_default=False) is None
    assert misfit_inside([1], parameter(default=(0.9, 0.99))) is None
    assert misfit_inside(["slow"], parameter(default=("a", 1))) is None


def test_arrays_and_scalars_of_any_library_are_numbers():
    jax = pytest.importorskip("jax")
    for annotation in (float | jax.Array, jax.Array | np.ndarray | np.bool | np.number | bool | int | float | complex):
        assert misfit("fast", parameter(annotation, 0.9)).startswith(NUMBER)
        assert misfit(0.9, parameter(annotation, 0.9)) is None


def test_a_default_that_is_a_number_rules_text_out():
    assert misfit("fast", parameter(default=0.1)) == NUMBER
    assert misfit("fast", parameter(default=0.1), by_default=False) is None
    for value in (1, 0.5, [1], True, AUTO, {"_target_": "a.B"}):
        assert misfit(value, parameter(default=1)) is None
    for default in (None, "valid", (1, 2), True):
        assert misfit("fast", parameter(default=default)) is None


def test_null_is_no_number_unless_it_is_the_default():
    assert misfit(None, parameter(float, 0.1)) == misfit(None, parameter(float | torch.Tensor, 1e-3)) == NUMBER
    for one in (parameter(float, None), parameter(float | None, 0.1), parameter(bool, True), parameter(default=0.1)):
        assert misfit(None, one) is None
    assert misfit(True, parameter(default=0.1)) == NUMBER
    assert misfit(True, parameter(default=1)) is None


def test_the_default_is_the_example():
    shown = [example_of(parameter(default=one)) for one in ((2, 2), 0.1, True, "a", None, ("a",))]
    assert shown == ["[2, 2]", "0.1", "true", None, None, None]


@pytest.mark.parametrize(
    ("target", "argument", "value"),
    [
        ("torch.optim.SGD", "lr", "fast"),
        ("torch.optim.AdamW", "weight_decay", "1e-"),
        ("torch.optim.lr_scheduler.StepLR", "gamma", "slow"),
        ("torch.nn.CrossEntropyLoss", "label_smoothing", "some"),
        ("torchmetrics.classification.MulticlassAccuracy", "num_classes", "ten"),
        ("optax.adamw", "learning_rate", "fast"),
        ("optax.adamw", "b1", "much"),
        ("rtrain.models.torch.resnet.ResNet", "layers", 1),
        ("sklearn.linear_model.Ridge", "alpha", None),
    ],
)
def test_arguments_of_targets(target, argument, value):
    node = {"_target_": target, "_partial_": True, argument: value}
    if value is None:
        Builder().check_node(node, "trainer.x")
        return
    with pytest.raises(TargetError, match="must be ") as caught:
        Builder().check_node(node, "trainer.x")
    assert caught.value.key == f"trainer.x.{argument}"


def test_an_element_is_named_by_its_place():
    node = {"_target_": "rtrain.models.torch.MLP", "_partial_": True, "hidden": [64, "big"]}
    with pytest.raises(TargetError, match="must be a whole number, not 'big'") as caught:
        Builder().check_node(node, "trainer.model")
    assert caught.value.key == "trainer.model.hidden.1"


def test_text_that_is_a_number_is_told_where_it_may_come_from():
    with pytest.raises(TargetError) as caught:
        Builder().check_node({"_target_": "torch.optim.SGD", "_partial_": True, "lr": "0.1"}, "trainer.optimizer")
    assert "oc.decode" in caught.value.hint


def test_scikit_learn_says_itself_what_it_takes():
    node = {"_target_": "sklearn.feature_selection.SelectKBest", "k": "all"}
    Builder().check_node(node, "trainer.estimator")
