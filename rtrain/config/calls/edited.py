"""Modules of the user's that were edited since this process imported them: Python keeps running the old code."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from rtrain.config.diagnostics.own_lines import is_own
from rtrain.config.files.locations import shown


class _Imported(NamedTuple):
    spec: object
    """Another one once the module is reloaded."""
    file: Path
    """Its source."""
    changed_at: int
    """When that had been changed last, in nanoseconds."""


_imported: dict[str, _Imported] = {}
"""The user's own modules."""
_installed: set[str] = set()
"""All others: thousands, of which each is examined only once."""


def note_imported() -> None:
    """Note of which state of their files the user's modules are that were imported since the last call."""
    for name in sys.modules.keys() - _installed - {"__main__"}:
        spec, file = _own(name, "__spec__"), _own(name, "__file__")
        if name in _imported and _imported[name].spec is spec:
            continue
        if isinstance(file, str) and is_own(file):
            _imported[name] = _Imported(spec, Path(file), _changed_at(Path(file)))
        else:
            _installed.add(name)


def tell_of_edited() -> None:
    """Warn of modules whose files were changed since; workers in other processes read the new code.

    Warns:
        UserWarning: There is one.
    """
    note_imported()
    for name, one in _imported.items():
        if _own(name, "__spec__") is not one.spec:
            continue
        if _changed_at(one.file) != one.changed_at:
            warnings.warn(
                f"{shown(one.file)} was edited after {name} was imported: this process keeps the old code, and "
                "worker processes read the new one. Restart it, or reload the module: importlib.reload, %autoreload 2",
                stacklevel=2,
            )


def _own(name: str, attribute: str) -> Any:
    """Return what a module has itself: one that is imported lazily would import the rest if it was asked for more."""
    return getattr(sys.modules.get(name), "__dict__", {}).get(attribute)


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:  # it was deleted
        return 0
