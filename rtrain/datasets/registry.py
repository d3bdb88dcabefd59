"""Which dataset sources there are: the files in ``sources/``, and the entry points ``rtrain.datasets``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Source
from rtrain.errors import ConfigError
from rtrain.plugins import (
    Confs,
    PluginInfo,
    check_installed,
    describe_all,
    describe_plugin,
    find_modules,
    import_plugin,
)

ENTRY_POINTS = "rtrain.datasets"


@cache
def modules() -> dict[str, str]:
    """Return the module of each source by name; an entry point's value is the dotted path of its module."""
    files = (Path(__file__).parent / "sources").glob("[!_]*.py")
    return find_modules({path.stem: f"{__package__}.sources.{path.stem}" for path in files}, ENTRY_POINTS)


def confs() -> Confs:
    """Return the ``Conf`` dataclass of each source by name; imports no reader library."""
    return Confs(modules(), lambda name: _source_class(name).Conf)


def whole_confs() -> Confs:
    """Return by name the dataclass of keys that each source has in ``datasets``; imports no reader library."""
    return Confs(modules(), lambda name: _source_class(name).WholeConf or _source_class(name).Conf)


def load_source(name: str, builder: Builder | None = None) -> Source:
    """Return the source called ``name``; ``builder`` imports what its config names.

    Raises:
        ConfigError: There is none of that name, or it needs a module that is not installed.
    """
    if name not in modules():
        raise ConfigError(f"there is no dataset source '{name}'.", nearest_or_all(name, modules()))
    source = _source_class(name)()
    source.builder = builder or Builder()
    check_installed(f"dataset '{name}'", source.requires, source.extra)
    return source


def describe() -> list[PluginInfo]:
    """Return what ``rtrain datasets`` lists."""
    return describe_all(modules(), _describe)


def _describe(name: str) -> PluginInfo:
    kind = _source_class(name)
    return describe_plugin(name, kind, kind.requires, kind.extra)


def _source_class(name: str) -> type[Source]:
    """Return the one subclass of ``Source`` that the module of ``name`` defines."""
    module = import_plugin(name, modules()[name])
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Source) and value.__module__ == module.__name__:
            return value
    raise ConfigError(f"dataset '{name}': {module.__name__} defines no subclass of rtrain.datasets.base.Source.")
