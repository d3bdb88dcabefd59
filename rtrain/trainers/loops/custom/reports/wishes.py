"""What ``ray.train.report`` may be asked for: names of checkpoints, and how they are uploaded."""

from __future__ import annotations

from typing import Any

from ray.train import CheckpointUploadMode

from rtrain.config.secrets.redact import Redactor
from rtrain.errors import TrainingError, shortened
from rtrain.runs.filesystem.plain_files import is_plain_name

MAX_NAME_BYTES = 200
"""Of the folder of a checkpoint: a number and a temporary name's ending may follow, and file systems allow 255."""


def check_name(name: Any, redact: Redactor) -> None:
    """Refuse a name that a folder can't have, or that is a secret.

    Raises:
        TrainingError: Names it.
    """
    if name is None:
        return
    clean = redact(str(name))
    if not isinstance(name, str) or not is_plain_name(name or "x") or name.startswith(".") or not name.isprintable():
        raise TrainingError(f"checkpoint_dir_name={clean!r} is not a plain folder name.", "Name it after the step.")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise TrainingError(
            f"checkpoint_dir_name={shortened(clean, MAX_NAME_BYTES)!r} is too long for a folder.",
            f"The maximum is {MAX_NAME_BYTES} bytes.",
        )
    if clean != name:
        raise TrainingError(
            f"checkpoint_dir_name={clean!r} contains a secret of the config.", "Name it after the step."
        )


def check_wishes(mode: CheckpointUploadMode, fill: Any) -> None:
    """Refuse what reports of a loop can't do.

    Raises:
        TrainingError: Names it.
    """
    if not isinstance(mode, CheckpointUploadMode):
        raise TrainingError(
            f"ray.train.report(checkpoint_upload_mode={mode!r}): this is not a ray.train.CheckpointUploadMode.",
            "Report with ray.train.CheckpointUploadMode.SYNC, ASYNC or NO_UPLOAD.",
        )
    if mode is CheckpointUploadMode.NO_UPLOAD and fill is not None:
        raise TrainingError(
            "ray.train.report(checkpoint_upload_mode=NO_UPLOAD): checkpoint_upload_fn has no effect.",
            "Remove one of them.",
        )
