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
    file: Path | None
    """Its source; None where it is not the user's own."""
    changed_at: int
    """When that had been changed last, in nanoseconds."""


_imported: dict[str, _Imported] = {}


def note_imported() -> None:
    """Note of which state of their files the user's modules are that were imported since the last call."""
    for name in list(sys.modules):
        spec, file = _own(name, "__spec__"), _own(name, "__file__")
        if name != "__main__" and isinstance(file, str) and (name not in _imported or _imported[name].spec is not spec):
            own = Path(file) if is_own(file) else None
            _imported[name] = _Imported(spec, own, 0 if own is None else _changed_at(own))


def tell_of_edited() -> None:
    """Warn of modules whose files were changed since; workers in other processes read the new code.

    Warns:
        UserWarning: There is one.
    """
    note_imported()
    for name, one in _imported.items():
        if one.file is None or _own(name, "__spec__") is not one.spec:
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
