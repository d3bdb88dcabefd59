"""Which parameters matter, told from trials of which it is known."""

import random

import pytest

from rtrain.sweeps.importance import importance


def test_what_decides_explains_all_and_what_does_not_nothing():
    rng = random.Random(0)
    rows = [(a, b) for a in "xy" for b in "12345" for _ in range(10)]
    values = [(5.0 if a == "x" else 1.0) + rng.gauss(0, 0.01) for a, _ in rows]
    found = importance({"b": [b for _, b in rows], "a": [a for a, _ in rows]}, values)
    assert list(found) == ["a", "b"]
    assert found["a"] > 0.999
    assert found["b"] < 0.05


def test_numbers_that_are_all_different_are_told_by_their_size():
    rng = random.Random(1)
    rates = [10 ** rng.uniform(-4, 0) for _ in range(40)]
    noise = [rng.random() for _ in range(40)]
    values = [float(rate > 0.01) for rate in rates]
    found = importance({"lr": list(map(repr, rates)), "noise": list(map(repr, noise))}, values)
    assert found["lr"] > 0.6
    assert found["noise"] < 0.25


def test_in_the_mean_a_parameter_that_does_not_matter_explains_nothing():
    rng = random.Random(2)
    shares = []
    for _ in range(300):
        values = [rng.random() for _ in range(24)]
        shares.append(importance({"a": [str(index % 6) for index in range(24)]}, values)["a"])
    assert sum(shares) / len(shares) < 0.1  # eta squared, which knows no chance, would be 0.22


@pytest.mark.parametrize("texts", [["1", "2"], ["1", "1", "1"], ["1", "2", "1", "2"], ["1", "2", "3", "4"]])
def test_too_few_trials_tell_nothing(texts):
    assert importance({"a": texts}, [0.1, 0.2, 0.3, 0.9][: len(texts)]) == {"a": None}


def test_trials_that_are_all_the_same_show_no_difference():
    assert importance({"a": ["1", "2"] * 3}, [1.0] * 6) == {"a": 0.0}
