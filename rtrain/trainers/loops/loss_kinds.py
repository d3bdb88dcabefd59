"""Losses that frameworks bring, by what their targets are: one that is for other targets is refused before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rtrain.config.did_you_mean import plain, to_try
from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.tasks import CLASSES

OF_CLASSES = frozenset(
    {
        *("crossentropy", "nll", "multimargin", "multilabelmargin", "multilabelsoftmargin", "categoricalhinge"),
        *("categoricalcrossentropy", "sparsecategoricalcrossentropy", "categoricalfocalcrossentropy"),
        *("softmaxcrossentropy", "safesoftmaxcrossentropy", "softmaxcrossentropywithintegerlabels"),
        *("polylosscrossentropy", "multiclasshinge", "multiclassperceptron"),
    }
)
"""Names without ``_`` and ``loss``, in small letters: ``CrossEntropyLoss`` and ``cross_entropy`` are one."""
CROSS_ENTROPY = frozenset(
    {
        *("crossentropy", "sparsecategoricalcrossentropy"),
        *("softmaxcrossentropywithintegerlabels", "safesoftmaxcrossentropywithintegerlabels"),
    }
)
SAME_LOSS = frozenset({"_target_", "reduction", "from_logits"})
"""Arguments that leave a loss what it is."""
OF_PROBABILITIES = frozenset(
    {
        *("bce", "bcewithlogits", "binarycrossentropy", "binarycrossentropywithlogits", "binaryfocalcrossentropy"),
        *("kldiv", "kldivergence", "sigmoidbinarycrossentropy", "sigmoidfocal"),
    }
)
OF_SIGNS = frozenset({"softmargin", "hingeembedding", "hinge", "squaredhinge", "perceptron"})
OF_NUMBERS = frozenset(
    {
        *("mse", "l1", "l2", "mae", "mape", "msle", "smoothl1", "huber", "logcosh", "squarederror", "cosinesimilarity"),
        *("meansquarederror", "meanabsoluteerror", "meanabsolutepercentageerror", "meansquaredlogarithmicerror"),
    }
)
RANGES = ((OF_PROBABILITIES, 0.0, "from 0 to 1"), (OF_SIGNS, -1.0, "-1 or 1"))
"""Losses that numbers fit whose smallest is not below this, and whose largest is not above 1."""


def is_cross_entropy(node: Mapping[str, Any] | None) -> bool:
    """Return whether the loss of a classification is cross entropy, without weights of classes, smoothing and the like.

    Args:
        node: The section ``trainer.loss``; None: the default.
    """
    if node is None:
        return True
    name = plain(str(node.get("_target_")).rpartition(".")[2]).removesuffix("loss")
    return name in CROSS_ENTROPY and {key for key, value in node.items() if value} <= SAME_LOSS


def check_loss_kind(target: str, job: Job, *, of_numbers: str, of_classes: str) -> None:
    """Refuse a loss that is for other targets than those of the dataset.

    Args:
        target: The ``_target_`` of the loss. Its name means such a loss where it is in one of the ``homes`` of the
            trainer's losses: a function of the user's may be called the same.
        job: Its dataset may have probabilities as numbers, which losses of two classes take.
        of_numbers: The word that chooses a loss for a regression.
        of_classes: The word that chooses a loss for classes.

    Raises:
        ConfigError: Names the loss, the task, and what works.
    """
    dataset, name = job.dataset, target.rpartition(".")[2]
    homes = getattr(job.conf.trainer, "homes", {}).get("loss", ())
    if dataset is None or not target.startswith(tuple(f"{one}." for one in homes)):
        return
    info, kind = dataset.info, plain(name).removesuffix("loss")
    if info.task in CLASSES:
        # Of two classes, one output and a squared error make a Brier score.
        wanted = "numbers to predict" if kind in OF_NUMBERS and info.num_classes != 2 else ""
        fix, other = of_classes, "regression"
    else:
        wanted = "classes" if kind in OF_CLASSES else _range_missed(kind, dataset)
        fix, other = of_numbers, "classification"
    if wanted:
        more = f"or, if the targets are others: dataset.task={other}" if hasattr(job.conf.dataset, "task") else None
        raise ConfigError(
            f"trainer.loss: {name} is for {wanted}, but {info.name} is for {info.task}.", to_try(fix, more)
        )


def _range_missed(kind: str, dataset: Dataset) -> str:
    """Return the targets that a loss needs, if those of a regression differ; else an empty string."""
    split = dataset.splits["train"]
    for names, lowest, wanted in RANGES:
        if kind in names and isinstance(split, ResidentSplit):
            low, high = np.min(split.columns["y"]), np.max(split.columns["y"])
            return "" if lowest <= low and high <= 1 else f"targets {wanted}"
    return ""
