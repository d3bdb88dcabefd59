"""Which files a train loop leaves in the current folder, and their copies in the run directory.

Those are files that were not there before, or have changed.
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

from rtrain.runs.manifest import FILE_NAME as MANIFEST

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
OF_RUNS = (MANIFEST, "sweep.json", "pyvenv.cfg")
"""Files by which folders are known that a loop does not write: runs, sweeps and virtual environments."""

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
def written_files() -> Iterator[WrittenFiles]:
    """Yield what is filled in when the block ends: the files that were written in the current folder meanwhile.

    Whatever process has written them. Hidden ones, run directories, virtual environments and what Python caches are
    left out.
    """
    found = WrittenFiles(Path.cwd())
    before, skipped = _stamps(found.folder)
    try:
        yield found
    finally:
        after, _ = _stamps(found.folder)
        new = after.keys() - before.keys()
        found.new += sorted(name for name in new if skipped.isdisjoint(PurePosixPath(name).parents))
        found.replaced += sorted(name for name in after.keys() & before.keys() if after[name] != before[name])


def names_text(facts: Mapping[str, Sequence[str]]) -> str:
    """Return the files of a manifest in one line: ``model.pt, log.csv (replaced), tb/ (3 files)``."""
    folders = Counter(_top(name) for kind in ("new", "replaced") for name in facts[kind])
    replaced = {_top(name) for name in facts["replaced"]}
    texts = []
    for top, count in folders.items():
        about = [f"{count} files"] if count > 1 else []
        about += ["replaced"] if top in replaced else []
        texts.append(f"{top} ({', '.join(about)})" if about else top)
    rest = len(texts) - MAX_SHOWN
    return ", ".join(texts[:MAX_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


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
