"""Changes to the run of a trial while it is not training: it ends, or gets another trial's checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtrain.config.composed import Composed
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import (
    all_checkpoints,
    checkpoints_dir,
    read_record,
    remove_checkpoint,
    write_checkpoint,
)
from rtrain.runs.events import events_file
from rtrain.runs.filesystem.files import sha256_of_text, write_atomic
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.manifest import CONFIG_NAME, read_manifest, utc_now
from rtrain.runs.recorder import list_checkpoints
from rtrain.runs.signature import signing_key, with_signature
from rtrain.runs.verify import newest_whole
from rtrain.trainers.trained import read_about, wrote_files

OF_WRITING = ("name", "time", "size_bytes", "files", "seal")
"""Fields of a checkpoint's record that describe its files; the others describe the training."""


def end_run(run_dir: Path, status: str, reason: str, error: Mapping[str, Any] | None = None) -> None:
    """Write into the manifest of a run that no process trains how it ended.

    Args:
        run_dir: The run.
        status: What it is from now on.
        reason: Why, in one line.
        error: ``type`` and ``message``, if it failed.
    """
    with locked(run_dir):
        manifest = read_manifest(run_dir)
        manifest.status, manifest.exit_reason, manifest.ended_at = status, reason, utc_now()
        if error is not None:
            manifest.error = {**error, "rank": None, "traceback": ""}
        manifest.write(run_dir)


def record_values(run_dir: Path, composed: Composed, changes: Mapping[str, str]) -> None:
    """Record of a run which values its newest checkpoint was made with, where nothing was trained with its config.

    Args:
        run_dir: The run, which is over; its checkpoint is another run's.
        composed: The config with these values.
        changes: They, by their names, as the run's lineage has them.
    """
    text = with_signature(composed.yaml, str(composed.project_root))
    with locked(run_dir):
        manifest = read_manifest(run_dir)
        manifest.config, manifest.config_hash = composed.resolved, composed.config_hash
        manifest.overrides, manifest.config_sha256 = list(composed.overrides), sha256_of_text(text)
        manifest.lineage[-1]["changes"] = dict(changes)
        write_atomic(run_dir / CONFIG_NAME, text)
        manifest.write(run_dir)


def take_checkpoint(run_dir: Path, source: Path, entry: Mapping[str, Any]) -> None:
    """Put a copy of another run's newest whole checkpoint into a run, and note it in the run's lineage.

    The run's own checkpoints at the same or a later step are deleted: it resumes from the copy. Events are not copied.

    Args:
        run_dir: The run, which is not training.
        source: The other one.
        entry: The entry of the run's lineage, without the checkpoint: ``time`` and ``changes``.

    Raises:
        CheckpointError: There is none, or it can't be written.
    """
    checkpoint, _ = newest_whole(source)
    if checkpoint is None:
        raise CheckpointError(f"{source} has no complete checkpoint.")
    record = read_record(checkpoint)
    with locked(run_dir):
        there = all_checkpoints(run_dir)
        # A loop chooses names, and steps: of two checkpoints with the same name, one may be further.
        gone = [one for one in there if one.name == checkpoint.name or read_record(one)["step"] >= record["step"]]

        def copy(folder: Path) -> None:
            for name in record["files"]:
                if name != events_file(checkpoint).name:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(checkpoint / name, folder / name)
            for one in gone:
                remove_checkpoint(one)

        facts = {name: value for name, value in record.items() if name not in OF_WRITING}
        key = signing_key(read_about(checkpoint).seal) if wrote_files(checkpoint) else ""
        write_checkpoint(checkpoints_dir(run_dir) / checkpoint.name, copy, facts, key)
        manifest = read_manifest(run_dir)
        list_checkpoints(manifest, [read_record(one) for one in all_checkpoints(run_dir)])
        manifest.parent_run = str(source)
        origin = {"run": str(source), "checkpoint": checkpoint.name, "step": record["step"]}
        manifest.lineage.append({**origin, "time": entry["time"], "changes": dict(entry["changes"])})
        manifest.write(run_dir)
