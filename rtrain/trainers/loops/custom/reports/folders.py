"""Folders of the checkpoints that a loop reports: copied under a temporary name, which goes when they are complete."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray.train import Checkpoint

from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import RECORD_NAME, checkpoints_dir, complete_checkpoint, writing
from rtrain.runs.events import events_file
from rtrain.trainers.checkpoint_writer import CheckpointWriter
from rtrain.trainers.loops.custom.reports.copying import copy_files

_OWN_NAME = re.compile(r"report-\d{6,}")


def free_name(run_dir: Path, wanted: str | None, number: int) -> str:
    """Return the name of the folder for the checkpoint of a report.

    Args:
        run_dir: The run directory.
        wanted: ``checkpoint_dir_name``. If a checkpoint of this name exists, the number of the report follows it.
        number: The number of the report.
    """
    name = wanted or f"report-{number:06d}"
    names = (name, f"{name}-{number:06d}")
    taken = (one for one in names if not (checkpoints_dir(run_dir) / one / RECORD_NAME).exists())
    return next(taken, f"{name}-{secrets.token_hex(3)}")


def clear_leftovers(run_dir: Path) -> None:
    """Delete the checkpoints that a killed process had begun to copy; no other process may write there."""
    for folder in checkpoints_dir(run_dir).iterdir():
        begun = folder.name.startswith(".") and folder.name.endswith(".tmp")
        # Before there were temporary names, they were copied into the folder itself.
        torn = _OWN_NAME.fullmatch(folder.name) is not None and not (folder / RECORD_NAME).exists()
        if (begun or torn) and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class Upload:
    """The checkpoint of one report, which several ranks may have files of."""

    run_dir: Path
    name: str
    """Of the folder."""
    token: str
    """The same on all ranks, and on no others."""
    rank: int
    fill: Callable[[Checkpoint, str], Checkpoint] | None = None
    """``checkpoint_upload_fn``: copies a checkpoint into the folder of this name."""
    delete: bool = False
    """Delete what was copied."""
    in_place: bool = False
    """``NO_UPLOAD``: the loop has written it where checkpoints are, and nothing is copied."""

    @property
    def target(self) -> Path:
        """Where the checkpoint will be."""
        return checkpoints_dir(self.run_dir) / self.name

    @property
    def staging(self) -> Path:
        """Where it is copied to."""
        return self.target.with_name(f".{self.name}-{self.token}.tmp")

    def copy(self, checkpoint: Checkpoint | None) -> None:
        """Copy the files of this rank, if it has any.

        Raises:
            CheckpointError: They can't be read or written.
            TrainingError: It is not a checkpoint, a name is taken, or ``fill`` has put the files elsewhere.
        """
        if checkpoint is None:
            return
        if not isinstance(checkpoint, Checkpoint):
            raise TrainingError(
                f"ray.train.report(checkpoint={checkpoint!r}): this is a {type(checkpoint).__name__}.",
                "Report a ray.train.Checkpoint: ray.train.Checkpoint.from_directory(folder).",
            )
        try:
            (self._take if self.in_place else self._copy)(checkpoint)
        except BaseException:
            shutil.rmtree(self.staging, ignore_errors=True)
            raise
        if self.delete:
            self._delete(checkpoint)

    def _copy(self, checkpoint: Checkpoint) -> None:
        if self.fill is not None:
            self._check_filled(self.fill(checkpoint, self.staging.name))
            return
        with writing(self.target, None), checkpoint.as_directory() as source:
            copy_files(Path(source), self.staging, self.target, f".{self.token}.{self.rank}.part")

    def _take(self, checkpoint: Checkpoint) -> None:
        """Give the folder its temporary name; another rank may have done so, as all of them write the same one."""
        source, there = Path(checkpoint.path), checkpoints_dir(self.run_dir)
        if source.resolve().parent != there.resolve():
            raise TrainingError(
                f"ray.train.report(checkpoint_upload_mode=NO_UPLOAD): {source} is not in {there}.",
                "Write it into ray.train.get_context().get_storage().build_checkpoint_path_from_name(NAME), or leave "
                "checkpoint_upload_mode out: then it is copied.",
            )
        if (source / RECORD_NAME).exists():
            message = f"ray.train.report(checkpoint_upload_mode=NO_UPLOAD): {source.name} is a checkpoint already."
            raise TrainingError(message, "Write each checkpoint to a new folder.")
        with writing(self.target, None):
            try:
                source.rename(self.staging)
            except FileNotFoundError:
                if not self.staging.exists():
                    raise

    def complete(self, facts: Mapping[str, Any], reported: int, writer: CheckpointWriter) -> dict[str, Any] | None:
        """Give the folder its name when all ranks have copied, and return its record; None if none had a checkpoint.

        Args:
            facts: The fields of the record other than the files.
            reported: The end of the writer's unsaved events when the checkpoint was reported: the folder keeps them.
            writer: Writes ``about.json`` of the run's checkpoints, and signs their files.

        Raises:
            CheckpointError: The folder can't be written.
        """
        if not self.staging.exists():
            return None
        with writing(self.target, self.staging):
            writer.unsaved.write(events_file(self.staging), reported)
            writer.about.write(self.staging)
            if self.target.exists() and not (self.target / RECORD_NAME).exists():
                shutil.rmtree(self.target)
            return complete_checkpoint(self.staging, self.target, facts, writer.signing_key)

    def _check_filled(self, filled: Any) -> None:
        where = getattr(filled, "path", None)
        if where is None or Path(where).resolve() != self.staging.resolve():
            raise TrainingError(
                f"checkpoint_upload_fn returned {filled}, not the checkpoint in {self.staging}.",
                "It is called with a checkpoint and the name of a folder: copy the checkpoint into the folder of this "
                "name below ray.train.get_context().get_storage().experiment_fs_path, and return that.",
            )

    def _delete(self, checkpoint: Checkpoint) -> None:
        from ray.train.v2._internal.execution.storage import delete_fs_path

        if self.target.parent.resolve().is_relative_to(Path(checkpoint.path).resolve()):
            raise TrainingError(
                f"delete_local_checkpoint_after_upload: {checkpoint.path} contains the run directory {self.run_dir}.",
                "Write the checkpoint into a temporary directory.",
            )
        delete_fs_path(checkpoint.filesystem, checkpoint.path)
