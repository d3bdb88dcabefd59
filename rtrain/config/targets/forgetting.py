"""Forget a project's modules, where a process trains for another project, or another trial, that imports them again."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

from rtrain.config.targets.allow_list import is_own, project_roots, use_project_root

log = logging.getLogger(__name__)

_OF_PYTHON = {"__main__", "__mp_main__", "sitecustomize", "usercustomize", *sys.stdlib_module_names}
_NOT_THE_PROJECTS = frozenset({"rtrain", *_OF_PYTHON})
"""Top-level modules that stay wherever they lie: Python may be installed in the project's folder."""
_kept: frozenset[str] = frozenset()
"""Names of modules that the program imported which calls rtrain: they are its own."""
_left: dict[str, ModuleType] = {}
"""Forgotten modules by name, until they are imported again."""


def keep_imported() -> None:
    """Keep, from now on, what this process has imported until now."""
    global _kept
    _kept = frozenset(sys.modules)


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
        _left.clear()


@contextmanager
def project_state_forgotten(root: str | Path) -> Iterator[None]:
    """Use a project in the block, and forget what its modules hold afterwards, as ``forget_project`` does."""
    paths = list(sys.path)
    use_project_root(root)
    try:
        yield
    finally:
        sys.path[:] = paths
        forget_project(root)


def forget_project(root: str | Path) -> None:
    """Forget what a project's modules hold: the next import runs them again.

    One that can't run twice, since it registers something in another package, say, then stays as it was.
    """
    _forget([Path(root)], _kept)
    if _left and _Again not in sys.meta_path:
        sys.meta_path.insert(0, _Again)


def has_forgotten() -> bool:
    """Return whether there are modules that were forgotten, and not imported again."""
    return bool(_left)


def _forget(roots: Sequence[Path], stay: Collection[str]) -> None:
    """Take the modules in these folders, written in Python, out of ``sys.modules``, and out of packages that stay."""
    modules = sys.modules.copy()  # other threads import meanwhile
    tops = {name.partition(".")[0] for name in modules} - _NOT_THE_PROJECTS
    tops = {top for top in tops if any(_reaches_into(modules.get(top), root) for root in roots)}
    names = [name for name in modules if name.partition(".")[0] in tops and name not in stay]
    own = {name for name in names if any(_is_source_of(modules[name], root) for root in roots)}
    own -= _plugin_modules() if own else frozenset()
    for name in own:
        _left[name] = sys.modules.pop(name, modules[name])
        package, _, inner = name.rpartition(".")
        if package in modules and package not in own:
            vars(modules[package]).pop(inner, None)


@cache
def _plugin_modules() -> frozenset[str]:
    """Return the modules with plugins for rtrain, which knows their classes, and the packages that they are in."""
    found = metadata.entry_points()
    groups = [group for group in found.groups if group.startswith("rtrain.")]
    names = {one.module for group in groups for one in found.select(group=group)}
    return frozenset(name[:end] for name in names for end in range(1, len(name) + 1) if f"{name}."[end] == ".")


def _reaches_into(module: ModuleType | None, root: Path) -> bool:
    """Return whether a top-level module, or one in it, may be in ``root``; one without a file always may."""
    file, folders = _places(module)
    return not file or any(_lies_in(place, root) for place in (file, *folders))


def _is_source_of(module: ModuleType | None, root: Path) -> bool:
    """Return whether a module is a file of Python in ``root``, or a package without ``__init__.py`` of such alone."""
    file, folders = _places(module)
    if file:
        return file.endswith(".py") and _lies_in(file, root)
    return bool(folders) and all(_lies_in(folder, root) for folder in folders)


def _places(module: ModuleType | None) -> tuple[str, list[str]]:
    """Return the file of a module, and the folders of a package."""
    own = getattr(module, "__dict__", {})  # one that is imported lazily would import the rest if it was asked for more
    return str(own.get("__file__") or ""), [str(one) for one in own.get("__path__") or ()]


@cache
def _lies_in(place: str, root: Path) -> bool:
    return is_own(Path(place), root)


class _Again(SourceFileLoader):
    """Imports a forgotten module again, if that is possible; finds itself, as a finder of ``sys.meta_path``."""

    def __init__(self, loader: SourceFileLoader, before: ModuleType) -> None:
        super().__init__(loader.name, loader.path)
        self._before: ModuleType | None = before

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a forgotten module is imported; None for all others."""
        before = _left.pop(name, None)
        if before is None:
            return None
        others = (one.find_spec(name, path, target) for one in sys.meta_path if one is not cls)
        spec = next(filter(None, others), None)
        if spec is not None and type(spec.loader) is SourceFileLoader and spec.origin == before.__file__:
            spec.loader = cls(spec.loader, before)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; where it raises, the one that ran before takes its place."""
        try:
            super().exec_module(module)
        except Exception as error:
            assert self._before is not None
            name = module.__name__
            why = f"{type(error).__name__}: {error}"
            log.warning("%s stays as it was: it can't be imported a second time in a process (%s)", name, why)
            sys.modules[name] = self._before
        finally:
            self._before = None
