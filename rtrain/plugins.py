"""What trainer plugins and dataset sources share: how they are found, and what has to be installed for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.allow_list import stands_before
from rtrain.errors import ConfigError, NotInstalledError, RtrainError, first_line

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PluginInfo:
    """One line of ``rtrain trainers`` or ``rtrain datasets``."""

    name: str
    summary: str
    missing: tuple[str, ...]
    """Modules that have to be installed first."""
    extra: str | None
    """The extra of rtrain that brings them."""
    broken: bool = False
    """Whether it can't be imported, or lacks a part; the summary says why."""

    @property
    def installed(self) -> bool:
        """Whether the plugin can be used as things are."""
        return not self.missing and not self.broken


class Confs(Mapping[str, type]):
    """The ``Conf`` dataclasses of plugins by name; a plugin is imported when it is asked for its own.

    Args:
        names: Of the plugins.
        load: Imports one and returns its ``Conf``.
    """

    def __init__(self, names: Collection[str], load: Callable[[str], type]) -> None:
        self._names, self._load = names, load
        self._broken: set[str] = set()

    def __getitem__(self, name: str) -> type:
        if name not in self._names:
            raise KeyError(name)
        conf = self._load(name)
        if not (isinstance(conf, type) and is_dataclass(conf)):
            message = f"the plugin '{name}': its Conf is not a dataclass."
            raise ConfigError(message, f"Put @dataclass(kw_only=True) above the class Conf of {conf.__module__}.")
        return conf

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def items(self) -> ItemsView[str, type]:
        """Return those that can be imported: a broken plugin is an error where it is asked for."""
        return self._importable().items()

    def values(self) -> ValuesView[type]:
        """Return those that can be imported."""
        return self._importable().values()

    def _importable(self) -> dict[str, type]:
        return {name: conf for name in self._names if (conf := self._found(name)) is not None}

    def _found(self, name: str) -> type | None:
        if name not in self._broken:
            try:
                return self[name]
            except ConfigError as error:
                self._broken.add(name)
                log.info("%s", error.message)
        return None

    def __len__(self) -> int:
        return len(self._names)


class PluginFiles:
    """The plugins of a kind: files of a package, each with a class of one name, and entry points.

    Args:
        what: What messages call them.
        package: The package; its entry points go by its name.
        class_name: The class that each file defines, with ``Conf``, ``requires`` and ``extra``.
    """

    def __init__(self, what: str, package: str, class_name: str) -> None:
        self._what, self._package, self._class = what, package, class_name

    @cached_property
    def modules(self) -> dict[str, str]:
        """The module of each by name; an entry point's value is the dotted path of its module."""
        folder = Path(import_module(self._package).__path__[0])
        names = {path.stem for path in folder.glob("[!_]*.py")} - {"base", "registry"}
        return find_modules({name: f"{self._package}.{name}" for name in names}, self._package)

    def confs(self) -> Confs:
        """Return the ``Conf`` dataclass of each by name; imports no library."""
        return Confs(self.modules, lambda name: self._kind(name).Conf)

    def name_of(self, conf: Any) -> str:
        """Return the name of the one that ``conf`` is a ``Conf`` of."""
        return next(name for name, kind in self.confs().items() if type(conf) is kind)

    def load(self, name: str) -> Any:
        """Return the class of the one called ``name``.

        Raises:
            ConfigError: It needs a module that is not installed.
        """
        kind = self._kind(name)
        check_installed(f"{self._what} '{name}'", kind.requires, kind.extra)
        return kind

    def _kind(self, name: str) -> Any:
        return class_of(name, self.modules[name], self._class)


def find_modules(own: Mapping[str, str], group: str) -> dict[str, str]:
    """Return the dotted path of each plugin by name: rtrain's ``own``, and those of the entry points ``group``."""
    others = {point.name: point.value for point in _entry_points().select(group=group)}
    return dict(sorted({**others, **own}.items()))


@cache
def _entry_points() -> Any:
    """Return those of all kinds, for ``select``: Python reads the files of all installed packages to find any."""
    return metadata.entry_points()


def import_plugin(name: str, path: str) -> ModuleType:
    """Import a module of the plugin ``name``.

    Raises:
        ConfigError: It fails to import; names the package, to distinguish a broken plugin from rtrain.
    """
    try:
        return import_module(path)
    except Exception as error:
        raise ConfigError(
            f"the plugin '{name}' can't be imported: {path}: {type(error).__name__}: {error}",
            f"Fix it, or uninstall the package that provides {path.partition('.')[0]}.",
        ) from error


def class_of(name: str, path: str, called: str) -> Any:
    """Return the class that a module of the plugin ``name`` has to define.

    Raises:
        ConfigError: The module fails to import, or has no such class.
    """
    found = getattr(import_plugin(name, path), called, None)
    if found is None:
        message = f"the plugin '{name}' is incomplete: {path} defines no {called}."
        raise ConfigError(message, "See docs/plugins.md")
    return found


@contextmanager
def named_plugin(name: str, plugin: object) -> Iterator[None]:
    """Make what the plugin of another package raises an error that names it, and the line; rtrain's own stay bugs.

    Raises:
        ConfigError: The block raised something else than an error for the user.
    """
    try:
        yield
    except RtrainError:
        raise
    except (Exception, SystemExit) as error:
        if type(plugin).__module__.startswith("rtrain."):
            raise
        from rtrain.config.targets.importing import raised_at

        message = f"the plugin '{name}' failed: {type(error).__name__}: {first_line(error)}"
        raise ConfigError(message, raised_at(error)) from error


def describe_all(names: Iterable[str], describe: Callable[[str], PluginInfo]) -> list[PluginInfo]:
    """Return what there is to say about plugins: a broken one doesn't hide the others."""
    return [_described(name, describe) for name in names]


def _described(name: str, describe: Callable[[str], PluginInfo]) -> PluginInfo:
    try:
        return describe(name)
    except ConfigError as error:
        return PluginInfo(name, error.message, (), None, broken=True)


def describe_plugin(name: str, kind: type, requires: Sequence[str], extra: str | None) -> PluginInfo:
    """Return what there is to say about a plugin: the first line of its class's docstring, and what it lacks."""
    return PluginInfo(name, (kind.__doc__ or "").partition("\n")[0], missing_modules(requires), extra)


def check_installed(what: str, requires: Sequence[str], extra: str | None) -> None:
    """Refuse to continue without the modules ``requires``, or with one of the project in their place.

    Raises:
        NotInstalledError: One is missing; says what to install.
        ConfigError: A file of the project has its name.
    """
    for name in requires:
        if file := stands_before(name.partition(".")[0]):
            message = f"{what} needs {name}, but {file} has the same name and would be imported instead."
            raise ConfigError(message, "Rename your file.")
    missing = missing_modules(requires)
    if missing:
        package = f"'rtrain[{extra}]'" if extra else " ".join(missing)
        raise NotInstalledError(f"{what} needs {', '.join(missing)}.", to_try(f"pip install {package}"))


def missing_modules(requires: Sequence[str]) -> tuple[str, ...]:
    """Return those of the modules that can't be imported; imports none of them but packages around them."""
    return tuple(name for name in requires if not _is_there(name))


def _is_there(module: str) -> bool:
    parent, _, _ = module.rpartition(".")
    return (not parent or _is_there(parent)) and util.find_spec(module) is not None
