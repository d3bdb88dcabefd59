"""Which of the varied parameters matter: how much of the differences between trials each explains by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from rtrain.config.value_types.numeric import is_number

MAX_GROUPS = 4
"""Number of groups for the values of a parameter, by size, if most trials have different values."""
FEWEST_MORE = 3
"""Trials beyond the number of groups, below which chance says more than a parameter."""


def importance(columns: Mapping[str, Sequence[str]], values: Sequence[float]) -> dict[str, float | None]:
    """Return the share of the variance of ``values`` that each parameter explains, from 0 to 1, greatest first.

    It is epsilon squared of a one-way analysis of variance (Kelley, "An Unbiased Correlation Ratio Measure", 1935),
    whose expectation is zero for a parameter without effect. Interactions of parameters are not included.

    Args:
        columns: By parameter, its value in each trial.
        values: The result of each trial.

    Returns:
        By parameter; None where there are too few trials to tell.
    """
    shares = {name: _share(_groups(texts), values) for name, texts in columns.items()}
    return dict(sorted(shares.items(), key=lambda item: -1.0 if item[1] is None else item[1], reverse=True))


def _share(groups: Sequence[int], values: Sequence[float]) -> float | None:
    num, kinds = len(values), sorted(set(groups))
    if num < len(kinds) + FEWEST_MORE or len(kinds) < 2:
        return None
    mean = fmean(values)
    total = sum((value - mean) ** 2 for value in values)
    if total == 0:
        return 0.0
    within = 0.0
    for kind in kinds:
        own = [value for value, group in zip(values, groups, strict=True) if group == kind]
        within += sum((value - fmean(own)) ** 2 for value in own)
    return max(0.0, 1 - within / (num - len(kinds)) * (num - 1) / total)


def _groups(texts: Sequence[str]) -> list[int]:
    """Return a group for each text: trials with the same value, or with numbers of about the same size."""
    kinds = sorted(set(texts))
    if len(kinds) * 2 <= len(texts) or not all(map(is_number, texts)):
        return [kinds.index(text) for text in texts]
    order = sorted(range(len(texts)), key=lambda index: float(texts[index]))
    num_groups = max(2, min(MAX_GROUPS, len(texts) // 3))
    found = [0] * len(texts)
    for place, index in enumerate(order):
        found[index] = place * num_groups // len(texts)
    return found
