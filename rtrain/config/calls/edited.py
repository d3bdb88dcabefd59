"""Modules of the user's that were edited since this process imported them: Python keeps running the old code."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import NamedTuple

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
    for name, module in list(sys.modules.items()):
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
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
        is_there = name in sys.modules and sys.modules[name].__spec__ is one.spec
        if is_there and one.file is not None and _changed_at(one.file) != one.changed_at:
            warnings.warn(
                f"{shown(one.file)} was edited after {name} was imported: this process keeps the old code, and "
                "worker processes read the new one. Restart it, or reload the module: importlib.reload, %autoreload 2",
                stacklevel=2,
            )


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:  # it was deleted
        return 0
