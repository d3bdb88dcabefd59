"""The available trainer plugins: the folders next to this file, and the entry points ``rtrain.trainers``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.errors import ConfigError
from rtrain.plugins import (
    Confs,
    PluginInfo,
    check_installed,
    class_of,
    describe_all,
    describe_plugin,
    find_modules,
    import_plugin,
)

if TYPE_CHECKING:
    from rtrain.trainers.base import TrainerPlugin

ENTRY_POINTS = "rtrain.trainers"


@cache
def packages() -> dict[str, str]:
    """Return the package of each plugin by name; an entry point's value is the dotted path of its folder."""
    own = {path.parent.name: f"{__package__}.{path.parent.name}" for path in Path(__file__).parent.glob("*/plugin.py")}
    return find_modules(own, ENTRY_POINTS)


def confs() -> Confs:
    """Return the ``Conf`` dataclass of each plugin by name; imports no framework."""
    return Confs(packages(), lambda name: class_of(name, f"{packages()[name]}.config", "Conf"))


def load_trainer(name: str, conf: Any = None) -> TrainerPlugin:
    """Return the plugin called ``name``, or what trains by a loop of the user's in its place.

    Args:
        name: ``trainer.type``.
        conf: The section ``trainer`` of a config, or its dataclass.

    Raises:
        ConfigError: It needs a module that is not installed.
    """
    plugin = _plugin(name)
    check_installed(f"trainer '{name}'", plugin.requires, _extra(name))
    if not has_own_loop(conf):
        return plugin
    from rtrain.trainers.loops.custom.plugin import TrainLoopPlugin

    return TrainLoopPlugin(plugin, partial(plugins, name))


def trainer_of(section: Mapping[str, Any]) -> TrainerPlugin:
    """Return the plugin that the section ``trainer`` of a config asks for, as ``load_trainer`` does."""
    return load_trainer(section["type"], section)


def has_own_loop(conf: Any) -> bool:
    """Return whether the section ``trainer`` of a config, or its dataclass, names a train loop of the user's."""
    named = conf.get("train_loop") if isinstance(conf, Mapping) else getattr(conf, "train_loop", None)
    return named is not None


def describe() -> list[PluginInfo]:
    """Return what ``rtrain trainers`` lists."""
    return describe_all(packages(), _describe)


def _describe(name: str) -> PluginInfo:
    plugin = _plugin(name)
    return describe_plugin(name, type(plugin), plugin.requires, _extra(name))


def recorded_packages(trainer: str) -> Iterator[str]:
    """Yield the packages whose versions a run of a trainer records: its own, and those of all of rtrain's plugins.

    A plugin's package names them in ``PACKAGES``: no other module is imported, since each run asks.
    """
    for name, package in packages().items():
        if name == trainer or _extra(name):
            yield from getattr(import_plugin(name, package), "PACKAGES", ())


def plugins(first: str | None = None) -> Iterator[tuple[str, TrainerPlugin]]:
    """Yield all plugins by name, whether what they need is installed or not; ``first`` is the first one."""
    for name in sorted(packages(), key=lambda one: one != first):
        with suppress(ConfigError):  # a broken package does not concern the run of another trainer
            yield name, _plugin(name)


def _plugin(name: str) -> TrainerPlugin:
    plugin: TrainerPlugin = class_of(name, f"{packages()[name]}.plugin", "Plugin")()
    return plugin


def _extra(name: str) -> str | None:
    """Return the extra that brings what the plugin needs: rtrain's own plugins have one of their name."""
    return name if packages()[name].startswith(f"{__package__}.") else None
