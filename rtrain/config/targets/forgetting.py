"""Forget a project's modules, where a process trains for another project, or another trial, that imports them again."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from rtrain.config.targets.allow_list import is_own, project_roots, use_project_root

_STAY = frozenset({"rtrain", "__main__", "__mp_main__", *sys.stdlib_module_names, *sys.builtin_module_names})
"""Top-level modules that are not the project's, wherever they lie: Python may be installed in its folder."""

FORGOTTEN: set[str] = set()
"""Names of modules that this process has imported and forgotten."""


@contextmanager
def project_forgotten() -> Iterator[None]:
    """Forget, after the block, the project that it used: the modules of the next one may have the same names."""
    paths, before = list(sys.path), frozenset(sys.modules)
    try:
        yield
    finally:
        roots = [root for root in project_roots() if str(root) not in paths]
        sys.path[:] = paths
        _forget(roots, before)


@contextmanager
def project_state_forgotten(root: str | Path, stay: Collection[str] = ()) -> Iterator[None]:
    """Use a project in the block, and forget what its modules hold afterwards: the next import runs them again.

    Args:
        root: Folder of the project.
        stay: Names of modules that stay as they are.
    """
    paths = list(sys.path)
    use_project_root(root)
    try:
        yield
    finally:
        sys.path[:] = paths
        _forget([Path(root)], stay)


def _forget(roots: Sequence[Path], stay: Collection[str]) -> None:
    """Take the modules in these folders, written in Python, out of ``sys.modules``, and out of packages that stay."""
    modules = sys.modules.copy()  # other threads import meanwhile
    stay = _STAY | _plugin_packages() | frozenset(stay)
    names = [name for name in modules if name not in stay and name.partition(".")[0] not in stay]
    own = {name for name in names if any(_is_source_of(modules[name], root) for root in roots)}
    FORGOTTEN.update(own)
    for name in own:
        sys.modules.pop(name, None)
        package, _, inner = name.rpartition(".")
        if package in modules and package not in own:
            vars(modules[package]).pop(inner, None)
    if own:
        del modules
        gc.collect()  # models and arrays of theirs: modules and their functions know each other


@cache
def _plugin_packages() -> frozenset[str]:
    """Return the top-level packages with plugins for rtrain, which knows their classes."""
    found = metadata.entry_points()
    groups = [group for group in found.groups if group.startswith("rtrain.")]
    return frozenset(re.split("[.:]", one.value)[0] for group in groups for one in found.select(group=group))


def _is_source_of(module: ModuleType | None, root: Path) -> bool:
    """Return whether a module is a file of Python in ``root``, or a package without ``__init__.py`` of such alone."""
    own = getattr(module, "__dict__", {})  # one that is imported lazily would import the rest if it was asked for more
    if own.get("__file__"):
        return str(own["__file__"]).endswith(".py") and is_own(Path(own["__file__"]), root)
    return all(is_own(Path(place), root) for place in own["__path__"]) if own.get("__path__") else False
