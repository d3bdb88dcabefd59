"""Targets and outputs as losses and metrics of Keras take them: as many axes, one row after the other."""

from __future__ import annotations

from typing import Any

import keras


def is_single(output: Any, target: Any) -> bool:
    """Return whether a model gives one number for each target."""
    return bool(len(output.shape) == len(target.shape) or output.shape[-1] == 1)


def as_columns(target: Any, output: Any) -> tuple[Any, Any]:
    """Return target and single output with the same axes, (rows,) as (rows, 1): Keras takes (rows,) for one row."""
    if len(output.shape) > len(target.shape):
        return target[..., None], output
    return (target, output) if len(target.shape) > 1 else (target[..., None], output[..., None])


class OfColumns(keras.losses.Loss):
    """A loss whose outputs are (rows,), of which Keras's own losses would make one number, whatever rows weigh."""

    def __init__(self, loss: Any) -> None:
        reduction = getattr(loss, "reduction", "sum_over_batch_size")
        super().__init__(name=getattr(loss, "name", None), reduction=reduction, dtype=getattr(loss, "dtype", None))
        self._of_rows = getattr(loss, "call", loss)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each row."""
        return self._of_rows(*as_columns(y_true, y_pred))


def update(metric: Any, target: Any, output: Any, weight: Any) -> None:
    """Update a metric; those of Keras broadcast, or fail, where targets are (rows,) and outputs (rows, 1)."""
    if is_single(output, target) and is_of_keras(metric):
        target, output = as_columns(target, output)
    metric.update_state(target, output, sample_weight=weight)


def is_of_keras(metric: Any) -> bool:
    """Return whether nothing of a metric is the user's own."""
    parts = (type(metric), getattr(metric, "_fn", None))
    return all(part is None or part.__module__.partition(".")[0] == "keras" for part in parts)
