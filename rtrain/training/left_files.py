"""The files that a loop of the user's leaves in the current folder, where other runs may write, too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rtrain.config.files.locations import shown
from rtrain.errors import RtrainError
from rtrain.run_lines import is_own_loop, others_text
from rtrain.runs.filesystem.lock import is_locked
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest, utc_now
from rtrain.runs.recorder import Recorder
from rtrain.runs.written_files import COPIES, MAX_COPIED_BYTES, WrittenFiles, written_files
from rtrain.training.preparation import Prepared

DEPTH = 4
"""How deep below ``run.root_dir`` runs are looked for: ``NAME/TIME``, and the trials of sweeps below that."""
OWN_FOLDER = "set in the loop's config ${hydra:runtime.output_dir}/files"


@contextmanager
def files_noted(ready: Prepared, recorder: Recorder) -> Iterator[None]:
    """Note and copy the files that a loop of the user's leaves in the current folder; of all trials, the sweep does."""
    if not is_own_loop(ready.composed.resolved["trainer"]) or ready.composed.sweep:
        yield
        return
    files, began = None, utc_now()
    try:
        with written_files(ready.composed.config_path) as files:
            yield
    finally:
        if files:
            recorder.manifest.files = files.facts()
            if ready.stop.num_signals < 2:
                _copy_files(files, recorder)
                root = files.folder / ready.composed.conf.run.root_dir
                _note_others(recorder, trained_since(began, root, recorder.run_dir, recorder.manifest))


def _copy_files(files: WrittenFiles, recorder: Recorder) -> None:
    """Copy the files into the run directory, and say what is missing there."""
    try:
        left_out = files.copy_into(recorder.run_dir)
    except OSError as error:
        recorder.observer.notice(f"files in {files.folder} could not be copied into the run: {error}")
        return
    recorder.manifest.files["copies"] = COPIES
    if left_out:
        recorder.observer.notice(
            f"not copied into the run, since copies are limited to {MAX_COPIED_BYTES >> 30} GiB in total: "
            f"{', '.join(left_out)}"
        )


def _note_others(recorder: Recorder, others: list[Path]) -> None:
    """Note the runs that may have written the files."""
    if not others:
        return
    recorder.manifest.files["may_be_of"] = [shown(one) for one in others]
    recorder.observer.notice(
        f"the files in {recorder.manifest.files['folder']} may be {others_text(recorder.manifest.files)}, "
        f"and so may their copies in this run. For a separate folder per run, {OWN_FOLDER}"
    )


def trained_since(began: str, root: Path, run_dir: Path, manifest: Manifest) -> list[Path]:
    """Return the runs of a project that a loop of the user's has trained since a time, other than one of them.

    Args:
        began: The time, as in manifests.
        root: The folder of the project's runs.
        run_dir: The run that is left out.
        manifest: Of that run.
    """
    found = (one for one in _runs_below(root, DEPTH) if one.resolve() != run_dir.resolve())
    return [one for one in found if _has_trained_since(began, one, manifest)]


def _has_trained_since(began: str, run_dir: Path, own: Manifest) -> bool:
    try:
        is_busy = is_locked(run_dir)
        if not is_busy and (run_dir / MANIFEST).stat().st_mtime < datetime.fromisoformat(began).timestamp():
            return False
        other = read_manifest(run_dir)
    except (OSError, RtrainError):  # another account's, or removed since
        return False
    in_same_folder = other.files.get("folder", own.files["folder"]) == own.files["folder"]
    is_of_project = other.project_root == own.project_root and in_same_folder
    is_over = not is_busy and other.ended_at is not None and other.ended_at < began
    return is_of_project and not is_over and is_own_loop(other.config.get("trainer") or {})


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the run directories below a folder that can be read.

    Links are not followed: ``best`` of a sweep is one.
    """
    try:
        with os.scandir(folder) as found:
            entries = {one.name: one.is_dir(follow_symlinks=False) for one in found}
    except OSError:  # another account's, or removed since
        return
    if MANIFEST in entries:
        yield folder
    elif depth:
        for name in sorted(name for name, is_folder in entries.items() if is_folder and name[0] != "."):
            yield from _runs_below(folder / name, depth - 1)
