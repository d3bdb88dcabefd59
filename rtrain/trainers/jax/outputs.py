"""What a model gives, checked against what the data needs."""

from __future__ import annotations

from typing import Any

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import WrongOutputsError

HINT = "Set the model's number of outputs to auto, or write a custom loop: trainer.train_function."


def fit_output(output: Any, target: Any, info: DatasetInfo) -> Any:
    """Return the output as losses take it: (rows, 1) becomes (rows,) where the target is.

    Raises:
        TrainingError: The model gives too few numbers, or something else than one array.
    """
    if not hasattr(output, "shape"):
        raise TrainingError(f"the model returns a {type(output).__name__}, but the loss needs one array.", HINT)
    if output.shape[:1] != target.shape[:1]:
        raise TrainingError(f"the model returns {output.shape} for {len(target)} rows.", HINT)
    if info.task in CLASSES:
        if output.ndim != target.ndim + 1 or output.shape[-1] < (info.num_classes or 0):
            raise WrongOutputsError(output.shape[1:], info, HINT)
        return output
    if output.ndim == target.ndim + 1 and output.shape[-1] == 1:
        output = output.squeeze(-1)
    if output.shape != target.shape:
        raise WrongOutputsError(output.shape[1:], info, HINT)
    return output
