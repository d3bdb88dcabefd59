"""What is measured for each task, whatever the framework, under the same names."""

from __future__ import annotations

import math

PLACES = ("token-classification", "language-modeling")
"""Tasks that predict a class at each place of a sequence."""
CLASSES = ("classification", *PLACES)
"""Tasks that predict classes."""
TINY = 1e-30
"""Stands for a sum or mean of weights where all are 0."""


def usual_monitor(task: str) -> str:
    """Return the metric that tells the best checkpoint unless another one is chosen."""
    return "accuracy" if task in ("classification", "token-classification") else "loss"


def metric_names(task: str) -> tuple[str, ...]:
    """Return the metrics that every evaluation has."""
    if task == "language-modeling":
        return ("loss", "accuracy", "perplexity")
    return ("loss", "accuracy") if task in CLASSES else ("loss", "mae", "mse")


def mean_names(task: str) -> tuple[str, ...]:
    """Return those of ``metric_names`` that are means over rows; ``derived_metrics`` adds the others."""
    return tuple(name for name in metric_names(task) if name != "perplexity")


def derived_metrics(task: str, metrics: dict[str, float]) -> dict[str, float]:
    """Return ``metrics`` with those that follow from them: the perplexity of a language model."""
    if task != "language-modeling":
        return metrics
    loss = metrics["loss"]
    return {**metrics, "perplexity": math.exp(loss) if loss < math.log(1e300) else math.inf}
