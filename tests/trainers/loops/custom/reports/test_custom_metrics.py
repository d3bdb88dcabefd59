"""Nothing that a loop reports vanishes: numbers of every library, and everything else as JSON can hold it."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from rtrain.config.secrets.redact import Redactor
from rtrain.errors import TrainingError
from rtrain.runs.filesystem.files import to_json
from rtrain.trainers.loops.custom.reports.metrics import MAX_VALUES, split_metrics, whole_number
from rtrain.trainers.loops.custom.reports.wishes import check_name

NUMBERS = [
    (1, 1.0),
    (0.5, 0.5),
    (True, 1.0),
    (np.float32(0.5), 0.5),
    (np.int64(3), 3.0),
    (np.bool_(False), 0.0),
    (np.array([2.0]), 2.0),
    (np.array(2.0), 2.0),
    (torch.tensor(2.0), 2.0),
    (torch.tensor([[2]]), 2.0),
    (torch.tensor(2.0, requires_grad=True), 2.0),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 4), 0.25),
]
OTHERS = [
    ("text", "text"),
    (None, None),
    ([1, 2.5, "a"], [1, 2.5, "a"]),
    ((torch.tensor(1.0), None), [1.0, None]),
    ([{"a": np.float32(0.5)}], [{"a": 0.5}]),
    (np.arange(3), [0, 1, 2]),
    (torch.ones(2, 2), [[1.0, 1.0], [1.0, 1.0]]),
    ({}, {}),
    (b"bytes", "b'bytes'"),
    (10**400, 10**400),
    (1 + 2j, "(1+2j)"),
    (np.complex128(1j), "1j"),
    (torch.tensor(1j), "1j"),
    (np.ma.masked, None),
    (np.ma.array([1.0], mask=[True]), [None]),
    (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS, ids=lambda value: type(value).__name__)
def test_a_scalar_of_any_library_is_a_number(value, number):
    assert split_metrics({"name": value}) == ({"name": number}, {})


@pytest.mark.parametrize(("value", "kept"), OTHERS, ids=lambda value: type(value).__name__)
def test_everything_else_is_kept_beside_the_numbers(value, kept):
    numbers, values = split_metrics({"name": value})
    assert numbers == {}
    assert values == {"name": kept}
    json.loads(to_json(values))


def _endless(kind):
    inner = {"a": 1} if kind is dict else [1]
    inner.update(b=inner) if kind is dict else inner.append(inner)
    return inner


class Unreadable:
    """An object whose text can't be had."""

    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    "metrics",
    [
        {"a": Unreadable()},
        {"a": [Unreadable()]},
        None,
        0.5,
        [("a", 1)],
        "a",
        _endless(dict),
        {"a": _endless(list)},
        {"a": [_endless(dict)]},
    ]
    + [{"a": torch.ones(shape, device="meta")} for shape in ((), (3,))]
    + [{"a": [torch.ones((), device="meta")]}],
    ids=lambda metrics: type(metrics).__name__,
)
def test_what_can_not_be_reported_is_told(metrics):
    with pytest.raises(TrainingError, match=r"ray\.train\.report"):
        split_metrics(metrics)


def test_numbers_that_are_none_are_numbers():
    metrics = {"a": math.nan, "b": math.inf, "c": Decimal("NaN"), "d": Decimal("sNaN"), "e": np.float32("nan")}
    numbers, values = split_metrics(metrics)
    assert all(math.isnan(numbers[name]) for name in "acde")
    assert numbers["b"] == math.inf
    assert values == {}


def test_mappings_are_flattened_at_any_depth():
    metrics = {"val": {"loss": 0.5, "by_class": {0: 0.25, "name": "cat"}}}
    assert split_metrics(metrics) == ({"val/loss": 0.5, "val/by_class/0": 0.25}, {"val/by_class/name": "cat"})


@pytest.mark.parametrize(
    ("metrics", "name"),
    [
        ({"a/b": 4, "a": {"b": 5}}, "a/b"),
        ({"a": {"b/c": 4, "b": {"c": "text"}}}, "a/b/c"),
        ({1: 4, "1": 5}, "1"),
        ({"a/b": {}, "a": {"b": {}}}, "a/b"),
    ],
    ids=["numbers", "deeper", "a number as a name", "nothing in them"],
)
def test_of_two_metrics_of_one_name_none_is_lost(metrics, name):
    with pytest.raises(TrainingError, match=f"two of the metrics are named {name}"):
        split_metrics(metrics)


def test_a_large_array_is_described():
    assert split_metrics({"a": np.zeros(MAX_VALUES + 1)})[1] == {"a": f"ndarray ({MAX_VALUES + 1},) float64"}


def test_what_is_too_long_for_a_line_is_cut_or_described():
    _, values = split_metrics({"text": "x" * 10**6, "list": ["x"] * 10**6, "deep": [[["x" * 9_999] * 9] * 9]})
    assert len(json.dumps(values)) < 50_000
    assert values["text"] == "x" * 10_000
    assert "list of" in values["list"]


def test_secrets_are_taken_out_of_texts_at_any_depth():
    values = split_metrics({"a": "key 123", "b": ["123"], "c": {"d": "123"}}, lambda text: text.replace("123", "***"))
    assert values[1] == {"a": "key ***", "b": ["***"], "c/d": "***"}


@pytest.mark.parametrize(("value", "whole"), [(3.0, 3), (2.5, None), (math.nan, None), (math.inf, None), (None, None)])
def test_what_counts_is_a_whole_number(value, whole):
    assert whole_number(value) == whole


def test_no_name_of_a_metric_holds_a_secret():
    metrics = {"S3cret-1": 1.0, "val": {"x/S3cret-1": 2}, "text": {"S3cret-1": "S3cret-1"}, "list": [{"S3cret-1": 3}]}
    numbers, values = split_metrics(metrics, Redactor(frozenset({"S3cret-1"})))
    assert numbers == {"***": 1.0, "val/x/***": 2.0}
    assert values == {"text/***": "***", "list": [{"***": 3.0}]}


def test_no_checkpoint_is_named_by_a_secret():
    redact = Redactor(frozenset({"S3cret-1"}))
    check_name("ck-1", redact)
    with pytest.raises(TrainingError) as raised:
        check_name("ck-S3cret-1", redact)
    assert "S3cret-1" not in str(raised.value)
