"""Which files a train loop leaves in the current folder: what is there after it and was not there before."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rtrain.runs.manifest import FILE_NAME as MANIFEST

MAX_LOOKED_AT = 5_000
"""Files and folders that are looked at, those nearest to the top first: a home directory has millions."""
MAX_NAMED = 200
"""Files that a manifest names."""
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


@contextmanager
def written_files() -> Iterator[WrittenFiles]:
    """Yield what is filled in when the block ends: the files that were written in the current folder meanwhile.

    Whatever process has written them. Hidden ones, run directories, virtual environments and what Python caches are
    left out.
    """
    found = WrittenFiles(Path.cwd())
    before, looked_at = _stamps(found.folder)
    try:
        yield found
    finally:
        after, _ = _stamps(found.folder)
        new = after.keys() - before.keys()
        if len(before) + len(looked_at) >= MAX_LOOKED_AT:  # there were others
            new = {name for name in new if os.path.dirname(name) in looked_at}  # noqa: PTH120
        found.new += sorted(new)
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


def _stamps(top: Path) -> tuple[dict[str, Stamp], set[str]]:
    """Return the files in a folder and below it, and the folders that were looked at, by their paths below it."""
    stamps: dict[str, Stamp] = {}
    looked_at, waiting = {""}, deque([""])
    while waiting and len(stamps) + len(looked_at) < MAX_LOOKED_AT:
        folder = waiting.popleft()
        looked_at.add(folder)
        for entry in _entries(top / folder, is_top=not folder):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif (stamp := _stamp(entry)) is not None:
                stamps[name] = stamp
    return stamps, looked_at


def _entries(folder: Path, *, is_top: bool) -> list[os.DirEntry[str]]:
    """Return what is in a folder and may be a loop's."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda one: one.name)
    except OSError:  # it is gone, or another account's
        return []
    if not is_top and any(one.name in OF_RUNS for one in found):
        return []
    return [one for one in found if not one.name.startswith(".") and one.name not in NOT_WRITTEN_BY_LOOPS]


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:  # removed since
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
