"""Validation of the checkpoints that a loop reports, ``ray.train.report(..., validation=...)``: on worker 0."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray.train import Checkpoint, ReportedCheckpointStatus, ValidationTaskConfig

from rtrain.errors import TrainingError, first_line
from rtrain.runs.checkpoints import all_checkpoints, note_in_checkpoint, read_record
from rtrain.trainers.loops.custom.conf import ValidationConf
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.worker import Worker

KEY = "trainer.validation_config"
STATUS = "validation"
"""The field of a record that says how the validation of its checkpoint went."""
TASK = "validation_task"
"""The field for what the report asked for; null if that can't be kept."""


@dataclass(frozen=True)
class Validated:
    """What came of a validation."""

    status: ReportedCheckpointStatus
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class Validation:
    """The validation of one checkpoint."""

    worker: Worker
    conf: ValidationConf
    task: ValidationTaskConfig | None
    """What the report asked for, on top of the conf; None: nothing."""

    def run(self, checkpoint: Checkpoint) -> Validated:
        """Validate a checkpoint; a failure becomes its status instead of an error."""
        function = self.worker.builder.locate(self.conf.function, f"{KEY}.function")
        own = self.task.fn_kwargs if self.task is not None else None
        arguments = {**self.conf.arguments, **(own or {})}
        seconds = self.conf.timeout_seconds if self.task is None else self.task.timeout_s
        return _validated(self.worker, lambda: function(checkpoint, **arguments), seconds)

    def pending(self) -> dict[str, Any]:
        """Return the fields of the record of a checkpoint that is to be validated: should this process be killed."""
        fields: dict[str, Any] = {STATUS: ReportedCheckpointStatus.PENDING_VALIDATION.value}
        if self.task is not None:
            asked = {"fn_kwargs": self.task.fn_kwargs, "timeout_s": self.task.timeout_s}
            fields[TASK] = asked if _can_be_kept(asked, self.worker) else None
        return fields


def validation_of(worker: Worker, asked: Any) -> Validation | None:
    """Return the validation that a report asks for; None if it asks for none.

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
            "ray.train.report(validation=...): there is no validation function.",
            f"Set it: {KEY}.function=module:function",
        )
    if not isinstance(asked, bool | ValidationTaskConfig):
        raise TrainingError(
            f"ray.train.report(validation={asked!r}): this is neither a bool nor a ValidationTaskConfig.",
            "Report with validation=True, or validation=ray.train.ValidationTaskConfig(fn_kwargs={...}).",
        )
    return Validation(worker, conf, asked if isinstance(asked, ValidationTaskConfig) else None)


def interrupted_validations(worker: Worker) -> Iterator[tuple[Path, dict[str, Any], Validation]]:
    """Yield the checkpoints whose validation was killed, with their records and what validates them now.

    Those that nothing can validate any more are noted as failed.
    """
    for folder in all_checkpoints(worker.run_dir):
        record = read_record(folder)
        if record.get(STATUS) != ReportedCheckpointStatus.PENDING_VALIDATION.value:
            continue
        conf, asked = worker.conf.validation_config, record.get(TASK, {})
        if conf is not None and asked is not None:
            yield folder, record, Validation(worker, conf, ValidationTaskConfig(**asked) if asked else None)
            continue
        why = f"{KEY} no longer names a function" if conf is None else "its arguments could not be kept"
        worker.notice(f"the validation of {folder.name} was interrupted and is not repeated: {why}")
        failed = {STATUS: ReportedCheckpointStatus.VALIDATION_FAILED.value}
        worker.checkpoints.tell(note_in_checkpoint(folder, failed))


def _can_be_kept(asked: Mapping[str, Any], worker: Worker) -> bool:
    """Return whether what a report asks for can be written down: it is JSON, and holds no secret."""
    try:
        text = json.dumps(asked)
    except (TypeError, ValueError):
        return False
    return bool(json.loads(text) == asked and worker.redact(text) == text)


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
        worker.notice(f"a validation took longer than {seconds:g} s and was abandoned")
        return Validated(ReportedCheckpointStatus.VALIDATION_TIMEOUT, {})
    if isinstance(found[0], Mapping):
        return Validated(ReportedCheckpointStatus.VALIDATED, found[0])
    worker.notice(f"a validation failed: {type(found[0]).__name__}: {worker.redact(first_line(found[0]))}")
    return Validated(ReportedCheckpointStatus.VALIDATION_FAILED, {})


def _outcome(validate: Callable[[], Any]) -> Mapping[str, Any] | BaseException:
    try:
        metrics = validate()
    except (Exception, SystemExit) as error:  # as in Ray, the loop continues without its metrics
        return error
    if isinstance(metrics, Mapping):
        return metrics
    return TypeError(f"the function returned {type(metrics).__name__}, not a dict of metrics")
