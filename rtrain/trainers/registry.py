"""Which trainer plugins there are: the folders beside this file, and the entry points ``rtrain.trainers``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

from rtrain.errors import ConfigError

if TYPE_CHECKING:
    from rtrain.trainers.base import TrainerPlugin

ENTRY_POINTS = "rtrain.trainers"


@dataclass(frozen=True)
class TrainerInfo:
    """One line of ``rtrain trainers``."""

    name: str
    summary: str
    missing: tuple[str, ...]
    """Modules that have to be installed first."""
    extra: str | None
    """The pip extra that brings them."""


@cache
def packages() -> dict[str, str]:
    """Return the package of each plugin by name; an entry point's value is the dotted path of its folder."""
    here = {path.parent.name: f"{__package__}.{path.parent.name}" for path in Path(__file__).parent.glob("*/plugin.py")}
    others = {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}
    return dict(sorted({**others, **here}.items()))


def confs() -> dict[str, type]:
    """Return the ``Conf`` dataclass of each plugin by name; imports no framework."""
    return {name: import_module(f"{package}.config").Conf for name, package in packages().items()}


def load_trainer(name: str) -> TrainerPlugin:
    """Return the plugin called ``name``.

    Raises:
        ConfigError: It needs a module that is not installed.
    """
    plugin: TrainerPlugin = import_module(f"{packages()[name]}.plugin").Plugin()
    missing = _missing(plugin)
    if missing:
        raise ConfigError(f"trainer '{name}' needs {', '.join(missing)}.", f"Try: pip install 'rtrain[{name}]'")
    return plugin


def describe() -> list[TrainerInfo]:
    """Return what ``rtrain trainers`` lists."""
    found = []
    for name, package in packages().items():
        plugin = import_module(f"{package}.plugin").Plugin()
        summary = (type(plugin).__doc__ or "").partition("\n")[0]
        own = package.startswith(f"{__package__}.")
        found.append(TrainerInfo(name, summary, _missing(plugin), name if own else None))
    return found


def _missing(plugin: TrainerPlugin) -> tuple[str, ...]:
    return tuple(module for module in plugin.requires if util.find_spec(module) is None)
