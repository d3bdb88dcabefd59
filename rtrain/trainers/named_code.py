"""The user's own files that a config names, as they are when a checkpoint is written and when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rtrain.config.targets.allow_list import file_in_project
from rtrain.runs.filesystem.files import sha256_of


def named_code(section: Any, root: Path) -> dict[str, str]:
    """Return the sha256 of each file of the project that a section names by a class or a function in it, by path.

    What such a file imports is not followed.

    Args:
        section: Of a resolved config: ``{_target_: nets.Net}`` and ``loops:train`` name ``nets.py`` and ``loops.py``.
        root: Folder of the project, which modules are imported from.
    """
    found = {}
    for file in sorted({file for name in _names(section) if (file := _file_of(name)) is not None}):
        try:
            found[file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name] = sha256_of(file)
        except OSError:  # the error comes when it is imported
            continue
    return found


def changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files that are named now, too, and have another content than before."""
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


def _file_of(name: str) -> Path | None:
    """Return the file of the module that a name begins with; None if it is none of the project's."""
    parts = name.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    modules = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((file for module in modules if (file := file_in_project(module)) is not None), None)
