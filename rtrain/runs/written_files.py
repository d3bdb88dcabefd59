"""Which files appear or change in the current folder while a train loop runs, and their copies in the run directory.

No file says which process has written it: those that can't be the loop's are left out.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from rtrain.runs.filesystem.files import RECORDS
from rtrain.runs.filesystem.open_files import file_id, written_by_others
from rtrain.text.enumeration import few

MAX_LOOKED_AT = 5_000
"""Files that are looked at, those nearest to the top first, and in one folder: a home directory has millions."""
MAX_NAMED = 200
"""Files that a manifest names."""
MAX_COPIED_BYTES = 1 << 30
"""Of all files together; larger ones are left where they are."""
COPIES = "written"
"""The folder of a run directory with the copies."""
MAX_SHOWN = 6
NOT_WRITTEN_BY_LOOPS = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})
OF_RUNS = (*RECORDS, "pyvenv.cfg")
"""Files by which folders are known that a loop does not write: runs, sweeps and virtual environments."""
SOURCES = frozenset({".py", ".pyi", ".pyx", ".ipynb", ".sh"})
"""Ends the names of files of code: one that changes while a loop runs is edited. A loop may write new ones."""
CONFIG_FOLDERS = frozenset({"configs", "config", "conf"})
CONFIGS = frozenset({".yaml", ".yml"})

Stamp = tuple[int, int, int]
"""Time, size and number of a file."""


@dataclass
class WrittenFiles:
    """Files by their paths in ``folder``, in order."""

    folder: Path
    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Those that were there before, with other content."""

    def __bool__(self) -> bool:
        return bool(self.new or self.replaced)

    def facts(self) -> dict[str, object]:
        """Return what a manifest keeps."""
        return {"folder": str(self.folder), "new": self.new[:MAX_NAMED], "replaced": self.replaced[:MAX_NAMED]}

    def copy_into(self, run_dir: Path) -> list[str]:
        """Copy the files into the run directory, the next run may replace them; return those that are too large.

        Raises:
            OSError: One can't be read, or there is no space left.
        """
        room, too_large = MAX_COPIED_BYTES, []
        for name in (*self.new, *self.replaced):
            source, target = self.folder / name, run_dir / COPIES / name
            if not source.is_file():  # a pipe, or it was removed since
                continue
            size = source.stat().st_size
            if size > room:
                too_large.append(name)
                continue
            room -= size
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            shutil.copy2(source, part)
            part.replace(target)
        return too_large


@contextmanager
def written_files(config: Path | None = None) -> Iterator[WrittenFiles]:
    """Yield what is filled in when the block ends: the files that were written in the current folder meanwhile.

    Left out are hidden files, run directories, virtual environments, what Python caches, code and configs that were
    edited, and files that this command's output goes to or that another process was writing when the block began.

    Args:
        config: The config of the run.
    """
    found = WrittenFiles(Path.cwd())
    before, skipped = _stamps(found.folder)
    others = written_by_others(found.folder)
    try:
        yield found
    finally:
        after = {name: one for name, one in _stamps(found.folder)[0].items() if one != before.get(name)}
        config_id = None if config is None else file_id(config)  # of now: editors replace a file by a new one
        own = []
        for name, stamp in sorted(after.items()):
            number = file_id(found.folder / name)
            # A file that is new has the number of one that was removed, at times.
            is_of_other = number in others and name in before and before[name][2] == stamp[2]
            if not is_of_other and (config_id is None or number != config_id):
                own.append(name)
        found.new += [one for one in own if one not in before and skipped.isdisjoint(PurePosixPath(one).parents)]
        found.replaced += [one for one in own if one in before and not _is_edited(PurePosixPath(one))]


def _is_edited(path: PurePosixPath) -> bool:
    """Return whether a file that has changed is one that users write: code, or an option of a config group."""
    return path.suffix in SOURCES or (path.suffix in CONFIGS and not CONFIG_FOLDERS.isdisjoint(path.parts))


def names_text(facts: Mapping[str, Sequence[str]]) -> str:
    """Return the files of a manifest in one line: ``model.pt, log.csv (replaced), tb/ (3 files)``."""
    folders = Counter(_top(name) for kind in ("new", "replaced") for name in facts[kind])
    replaced = {_top(name) for name in facts["replaced"]}
    texts = []
    for top, count in folders.items():
        about = [f"{count} files"] if count > 1 else []
        about += ["replaced"] if top in replaced else []
        texts.append(f"{top} ({', '.join(about)})" if about else top)
    return few(texts, MAX_SHOWN)


def _top(name: str) -> str:
    top, slash, _ = name.partition("/")
    return top + slash


def _stamps(top: Path) -> tuple[dict[str, Stamp], set[PurePosixPath]]:
    """Return the files in a folder and below it, and the folders that were not looked at, by their paths below it."""
    stamps: dict[str, Stamp] = {}
    waiting, skipped = deque([PurePosixPath()]), set()
    while waiting and len(stamps) < MAX_LOOKED_AT:
        folder = waiting.popleft()
        entries = _entries(top / folder)
        if len(entries) > MAX_LOOKED_AT:
            skipped.add(folder)
            continue
        if folder.parts and any(one.name in OF_RUNS for one in entries):
            continue
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.name.startswith(".") or entry.name in NOT_WRITTEN_BY_LOOPS:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(folder / entry.name)
            elif (stamp := _stamp(entry)) is not None:
                stamps[str(folder / entry.name)] = stamp
    return stamps, skipped.union(waiting)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, as far as it is looked at, and one more."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_LOOKED_AT + 1))
    except OSError:  # it is gone, or another account's
        return []


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:  # removed since
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
