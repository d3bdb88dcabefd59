"""Remove runs, their checkpoints, and what killed processes left behind; never anything of a run in progress."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError, RtrainError, RunInUseError
from rtrain.history.places import default_folders, find_places
from rtrain.history.rows import Row
from rtrain.runs.checkpoints import base_folders, checkpoints_dir, remove_checkpoint
from rtrain.runs.events import EVENTS
from rtrain.runs.filesystem.files import SWEEP, named_errors
from rtrain.runs.filesystem.leftovers import leftovers
from rtrain.runs.filesystem.lock import is_locked, locked
from rtrain.runs.filesystem.plain_files import check_run_dir
from rtrain.runs.manifest import CONFIG_NAME, MANIFEST, read_manifest

NOT_OURS = "Removing requires write permission."
REMOVED = re.compile(r"\.removed-.+-[0-9a-f]{6}")
"""A run that is being removed, or whose removal was interrupted: any part of it may be gone."""
SET_ASIDE = re.compile(r"\.(damaged|older)-.+")
"""A run that rtrain has put away, whole, because it was damaged, or because a store had a newer copy."""
OF_RUNS = (MANIFEST, CONFIG_NAME, EVENTS, SWEEP)
"""Of these files a run or a sweep has some even if it is damaged."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep all other processes out of a run, a trial and its sweep, or a sweep and its trials, in the block.

    Raises:
        ConfigError: One of them works there.
    """
    with ExitStack() as stack:
        try:
            for place in (*_sweep_of(folder), folder, *_trials(folder)):
                stack.enter_context(locked(place))
        except RunInUseError as error:
            raise ConfigError(error.message, "Wait until it ends, or stop it with Ctrl-C or kill.") from None
        yield


def _trials(folder: Path) -> list[Path]:
    is_run = (folder / MANIFEST).exists()
    return (
        [] if is_run else [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}")) if not path.parent.is_symlink()]
    )


def _sweep_of(folder: Path) -> list[Path]:
    """Return the sweep that a folder is a trial of: while it is running, it may start the trial again."""
    return [folder.parent] if (folder.parent / SWEEP).is_file() else []


def check_free(rows: Sequence[Row]) -> None:
    """Refuse runs that a process works on, and sweeps with such trials.

    Raises:
        ConfigError: Names the first one.
    """
    for row in rows:
        for place in (*_sweep_of(row.path), row.path, *_trials(row.path)):
            with named_errors(place, NOT_OURS):
                is_busy = is_locked(place)
            if is_busy:
                raise ConfigError(
                    f"{shown(place)} is running: nothing was removed.", "Leave it out, or wait until it ends."
                )


def dependent_runs(rows: Sequence[Row]) -> Iterator[tuple[Path, Path]]:
    """Yield each other run of the same roots whose adapters need a checkpoint of ``rows``, and that checkpoint.

    Args:
        rows: Runs and sweeps that are to be removed.
    """
    doomed = {Path(os.path.realpath(row.path)) for row in rows}
    for place in find_places(list(dict.fromkeys(_root_of(row) for row in rows))):
        run = Path(place.path)
        if place.kind == "sweep" or _is_below(run, doomed):
            continue
        bases = {base for one in sorted(checkpoints_dir(run).glob("[!.]*")) for base in base_folders(one)[:1]}
        yield from ((run, base) for base in sorted(bases) if _is_below(base, doomed))


def _is_below(path: Path, folders: Set[Path]) -> bool:
    real = Path(os.path.realpath(path))
    return not folders.isdisjoint((real, *real.parents))


def _root_of(row: Row) -> Path:
    """Return the ``run.root_dir`` of a run or a sweep, if its folder is still where it was; else the folder around it.

    Of a folder that was moved, nothing says how far up runs are.
    """
    root = row.path.absolute().parent.parent
    return root if root.name == Path(str(row.get("config.run.root_dir"))).name else row.path.absolute().parent


def remove_run(folder: Path) -> None:
    """Remove a run, a trial or a sweep with all that is in it. A kill in between leaves nothing that looks like a run.

    Raises:
        ConfigError: A process works on it.
        RunDirError: It can't be removed.
    """
    with named_errors(folder, NOT_OURS), held(folder):
        doomed = folder.with_name(f".removed-{folder.name}-{secrets.token_hex(3)}")
        folder.rename(doomed)
        shutil.rmtree(doomed)
    best = folder.parent / "best"  # of a sweep
    if best.is_symlink() and best.readlink() == Path(folder.name):
        best.unlink()


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a run, or of all trials of a sweep; the rest of its record stays.

    Raises:
        ConfigError: A process works on it.
        RtrainError: Its manifest can't be read or written.
    """
    with named_errors(folder, NOT_OURS), held(folder):
        for run_dir in _trials(folder) or [folder]:
            check_run_dir(run_dir)  # no link leads elsewhere
            manifest = read_manifest(run_dir)
            manifest.checkpoints, manifest.best_checkpoint = [], None
            manifest.write(run_dir)  # before they go, so that it never lists one that is gone
            for checkpoint in (path for path in sorted(checkpoints_dir(run_dir).glob("*")) if path.is_dir()):
                remove_checkpoint(checkpoint)


@dataclass(frozen=True)
class Leftover:
    """Something that nothing needs any more."""

    path: Path
    home: Path | None
    """The run or the sweep that it is in; None where it is next to runs."""


def find_leftovers(folders: Sequence[str | Path] = (), *, set_aside: bool = False) -> list[Leftover]:
    """Return what killed processes left behind, in and next to the runs below some folders.

    Args:
        folders: Where to look; none: where the project has its runs.
        set_aside: Also return runs that were put away.
    """
    named = list(folders) or default_folders()
    places = [Path(place.path) for place in find_places(named)]
    inside = [Leftover(path, place) for place in places if not _is_busy(place) for path in leftovers(place)]
    around = dict.fromkeys([*(Path(one).absolute() for one in named), *(place.parent for place in places)])
    beside = [path for folder in around for path in sorted(folder.glob(".*")) if _is_left(path, set_aside=set_aside)]
    return inside + [Leftover(path, None) for path in beside if path.is_dir() and not path.is_symlink()]


def _is_left(path: Path, *, set_aside: bool) -> bool:
    """Tell whether a hidden folder is a run that was being removed, or was put away: others are the user's own."""
    if REMOVED.fullmatch(path.name):
        return True
    return set_aside and bool(SET_ASIDE.fullmatch(path.name)) and any((path / name).exists() for name in OF_RUNS)


def _is_busy(folder: Path) -> bool:
    try:
        return is_locked(folder)
    except (OSError, RtrainError):  # its lock is something else: nothing there is touched
        return True


def remove_leftover(leftover: Leftover) -> None:
    """Remove it, unless a process works on its run now."""
    with suppress(ConfigError), ExitStack() as stack:
        if leftover.home is not None:
            stack.enter_context(held(leftover.home))
        if leftover.path.is_dir() and not leftover.path.is_symlink():
            shutil.rmtree(leftover.path)
        else:
            leftover.path.unlink(missing_ok=True)


def bytes_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size
    return sum(Path(root, name).lstat().st_size for root, _, names in os.walk(path) for name in names)
