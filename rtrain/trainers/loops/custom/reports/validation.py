"""Validation of the checkpoints that a loop reports, ``ray.train.report(..., validation=...)``: on worker 0."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ray.train import Checkpoint, ReportedCheckpointStatus, ValidationTaskConfig

from rtrain.config.targets.instantiate import locate
from rtrain.errors import TrainingError, first_line
from rtrain.trainers.loops.custom.conf import ValidationConf
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.worker import Worker


@dataclass(frozen=True)
class Validated:
    """What came of a validation."""

    status: ReportedCheckpointStatus
    metrics: Mapping[str, Any]


Validate = Callable[[Checkpoint], Validated]
"""Validates a checkpoint; a failure becomes its status instead of an error."""


def validation_of(worker: Worker, asked: Any) -> Validate | None:
    """Return what validates the checkpoint of a report; None if that is not asked for.

    Args:
        worker: Its conf names the function.
        asked: ``validation`` of the report: True, False or a ``ValidationTaskConfig``.

    Raises:
        TrainingError: There is no function.
    """
    if asked is False or asked is None:
        return None
    conf: ValidationConf | None = worker.conf.validation_config
    if conf is None:
        raise TrainingError(
            "ray.train.report(validation=...): no function validates.",
            "Name it: trainer.validation_config.function=module:function",
        )
    if not isinstance(asked, bool | ValidationTaskConfig):
        raise TrainingError(
            f"ray.train.report(validation={asked!r}): this is neither a bool nor a ValidationTaskConfig.",
            "Report with validation=True, or validation=ray.train.ValidationTaskConfig(fn_kwargs={...}).",
        )
    task = asked if isinstance(asked, ValidationTaskConfig) else ValidationTaskConfig(timeout_s=conf.timeout_seconds)
    function = locate(conf.function, "trainer.validation_config.function", worker.allow)
    arguments = {**conf.arguments, **(task.fn_kwargs or {})}
    return lambda checkpoint: _validated(worker, lambda: function(checkpoint, **arguments), task.timeout_s)


def _validated(worker: Worker, validate: Callable[[], Any], seconds: float | None) -> Validated:
    """Return what a validation finds; one that fails, or takes too long, is a notice and no end of the loop."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(_outcome(validate)), name="rtrain-validation", daemon=True)
    with kept_random_numbers():
        if seconds is None:
            found.append(_outcome(validate))
        else:
            thread.start()
            thread.join(seconds)
    if not found:
        worker.notice(f"a validation took longer than {seconds:g} s: it is left behind")
        return Validated(ReportedCheckpointStatus.VALIDATION_TIMEOUT, {})
    if isinstance(found[0], Mapping):
        return Validated(ReportedCheckpointStatus.VALIDATED, found[0])
    worker.notice(f"a validation failed: {type(found[0]).__name__}: {worker.scrub(first_line(found[0]))}")
    return Validated(ReportedCheckpointStatus.VALIDATION_FAILED, {})


def _outcome(validate: Callable[[], Any]) -> Mapping[str, Any] | Exception:
    try:
        metrics = validate()
    except Exception as error:  # as in Ray, the loop continues without its metrics
        return error
    if isinstance(metrics, Mapping):
        return metrics
    return TypeError(f"the function returned {type(metrics).__name__}, and not a dict of metrics")
