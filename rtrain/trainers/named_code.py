"""The user's own files that a config names, as they are when a checkpoint is written and when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rtrain.runs.filesystem.files import sha256_of


def named_code(section: Any, root: Path) -> dict[str, str]:
    """Return the sha256 of each file of the project that a section names by a class or a function in it.

    What such a file imports is not followed.

    Args:
        section: Of a resolved config: ``{_target_: nets.Net}`` and ``loops:train`` name ``nets.py`` and ``loops.py``.
        root: Folder of the project.
    """
    files = {file for name in _names(section) if (file := _file_of(name, root)) is not None}
    return {file.relative_to(root).as_posix(): sha256_of(file) for file in sorted(files)}


def changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files that are there and have another content than before."""
    return [name for name, digest in before.items() if now.get(name, digest) != digest]


def _names(section: Any) -> Iterator[str]:
    if isinstance(section, Mapping):
        for key, value in section.items():
            if isinstance(value, str) and (key == "_target_" or ":" in value):
                yield value
            else:
                yield from _names(value)
    elif isinstance(section, list | tuple):
        for one in section:
            yield from _names(one)


def _file_of(name: str, root: Path) -> Path | None:
    """Return the file of the module that a name begins with; None if the project has none."""
    parts = name.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for count in range(len(parts), 0, -1):
        place = root.joinpath(*parts[:count])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None
