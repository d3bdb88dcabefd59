"""What trainer plugins and dataset sources share: how they are found, and what has to be installed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata, util
from types import ModuleType

from rtrain.errors import ConfigError, NotInstalledError


@dataclass(frozen=True)
class PluginInfo:
    """One line of ``rtrain trainers`` or ``rtrain datasets``."""

    name: str
    summary: str
    missing: tuple[str, ...]
    """Modules that have to be installed first."""
    extra: str | None
    """The extra of rtrain that brings them."""

    @property
    def installed(self) -> bool:
        """Whether the plugin can be used as things are."""
        return not self.missing


def find_modules(own: Mapping[str, str], group: str) -> dict[str, str]:
    """Return the dotted path of each plugin by name: rtrain's ``own``, and those of the entry points ``group``."""
    others = {point.name: point.value for point in metadata.entry_points(group=group)}
    return dict(sorted({**others, **own}.items()))


def import_plugin(name: str, path: str) -> ModuleType:
    """Import a module of the plugin ``name``.

    Raises:
        ConfigError: It fails to import; names the package, so that one broken plugin can be told from rtrain.
    """
    try:
        return import_module(path)
    except Exception as error:
        raise ConfigError(
            f"the plugin '{name}' fails to import: {path}: {type(error).__name__}: {error}",
            f"Mend it, or uninstall the package that brings {path.partition('.')[0]}.",
        ) from error


def describe_plugin(name: str, kind: type, requires: Sequence[str], extra: str | None) -> PluginInfo:
    """Return what there is to say about a plugin: the first line of its class's docstring, and what it lacks."""
    return PluginInfo(name, (kind.__doc__ or "").partition("\n")[0], missing_modules(requires), extra)


def check_installed(what: str, requires: Sequence[str], extra: str | None) -> None:
    """Raise a NotInstalledError that says what to install if one of the modules ``requires`` is not there."""
    missing = missing_modules(requires)
    if missing:
        package = f"'rtrain[{extra}]'" if extra else " ".join(missing)
        raise NotInstalledError(f"{what} needs {', '.join(missing)}.", f"Try: pip install {package}")


def missing_modules(requires: Sequence[str]) -> tuple[str, ...]:
    """Return those of the modules that can't be imported; imports none of them but packages around them."""
    return tuple(name for name in requires if not _is_there(name))


def _is_there(module: str) -> bool:
    parent, _, _ = module.rpartition(".")
    return (not parent or _is_there(parent)) and util.find_spec(module) is not None
