"""Where runs and sweeps are: the folders to look in, and the run directories below them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtrain.errors import ConfigError
from rtrain.runs.events import EVENTS
from rtrain.runs.filesystem.files import SWEEP
from rtrain.runs.labels import LABELS
from rtrain.runs.manifest import MANIFEST

DEFAULT_FOLDERS = ("runs", "multirun")
CONFIG_FOLDERS = (".", "configs", "config", "conf")
MOST_CONFIGS = 200
"""YAML files of a folder in which ``run.root_dir`` is looked up."""
MOST_CONFIG_BYTES = 1 << 20
MAX_DEPTH = 6
"""How deep below a folder runs are looked for; Hydra's default, ``multirun/<day>/<time>/<number>``, is 4."""
WITHOUT_MANIFEST = frozenset({EVENTS, "checkpoints", "config.yaml"})
"""What a folder holds that has been a run directory before its manifest was lost."""


@dataclass(frozen=True)
class Place:
    """The folder of a run, a trial or a sweep."""

    path: str
    kind: str
    """``run``, ``trial`` or ``sweep``."""
    stamp: str
    """Changes whenever the folder's information about the run changes."""


def default_folders() -> list[str]:
    """Return the folders of the current project that hold runs: ``runs``, ``multirun``, and each ``run.root_dir``."""
    named = [*DEFAULT_FOLDERS, *_configured_roots()]
    return [one for one in dict.fromkeys(named) if Path(one).is_dir()]


def _configured_roots() -> Iterator[str]:
    """Yield the ``run.root_dir`` of each config of the current folder that sets one, as far as it needs no Hydra."""
    for folder in CONFIG_FOLDERS:
        for path in sorted(Path(folder).glob("*.yaml"))[:MOST_CONFIGS]:
            if (root := _root_in(path)) is not None:
                yield root


def _root_in(path: Path) -> str | None:
    import yaml  # only where a config is read

    try:
        if path.stat().st_size > MOST_CONFIG_BYTES or "root_dir" not in (text := path.read_text(encoding="utf-8")):
            return None
        found = yaml.safe_load(text)["run"]["root_dir"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError):
        return None  # it is not a config, or not one that says it
    return found if isinstance(found, str) and "${" not in found else None


def find_places(folders: Sequence[str | Path]) -> list[Place]:
    """Return what is in some folders, each run once.

    Args:
        folders: Each may be a run directory or a sweep itself.

    Raises:
        ConfigError: There is no such folder.
    """
    found: dict[str, Place] = {}
    for folder in folders:
        if "://" in str(folder):
            raise ConfigError(f"{folder} is in a store.", "This command takes folders on this machine.")
        if not Path(folder).is_dir():
            raise ConfigError(f"{folder} is not a folder.", "Name folders that contain runs, or none for the default.")
        for place in _below(str(Path(folder).absolute()), MAX_DEPTH, set()):
            found.setdefault(place.path, place)
    return list(found.values())


def _below(folder: str, depth: int, seen: set[tuple[int, int]]) -> Iterator[Place]:
    """Yield what a folder is, or what is below it. Links to folders are followed, each folder once."""
    if (manifest := _stamp(folder, MANIFEST)) is not None:
        kind = "trial" if _stamp(folder.rpartition("/")[0], SWEEP) is not None else "run"
        yield Place(folder, kind, f"{manifest} {_stamp(folder, LABELS)}")
    elif (sweep := _stamp(folder, SWEEP)) is not None:
        yield Place(folder, "sweep", f"{sweep} {_stamp(folder, LABELS)}")
        yield from _trials(folder)
    elif depth and (entries := _entries(folder, seen)):
        if {one.name for one in entries} >= WITHOUT_MANIFEST:
            yield Place(folder, "run", "-")
            return
        for entry in entries:
            if entry.name[0] != "." and entry.is_dir():
                yield from _below(entry.path, depth - 1, seen)


def _trials(sweep: str) -> Iterator[Place]:
    for entry in _entries(sweep, set()):
        if entry.name[0] != "." and entry.is_dir(follow_symlinks=False):  # ``best`` is a link
            stamp = _stamp(entry.path, MANIFEST)
            if stamp is not None:
                yield Place(entry.path, "trial", f"{stamp} {_stamp(entry.path, LABELS)}")


def _entries(folder: str, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing if it was seen before or can't be read."""
    try:
        facts = Path(folder).stat()
        if (facts.st_dev, facts.st_ino) in seen:
            return []
        seen.add((facts.st_dev, facts.st_ino))
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda one: one.name)
    except OSError:
        return []


def _stamp(folder: str, name: str) -> str | None:
    """Return what changes when a file is replaced or written to; None if there is none."""
    try:
        facts = os.lstat(f"{folder}/{name}")
    except OSError:
        return None
    return f"{facts.st_mtime_ns}-{facts.st_size}-{facts.st_ino}"
