"""From the config nodes of callbacks to callbacks, and what can be wrong with them before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.callbacks import Callback, check_callback
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.registry import plugins

KEY = "trainer.callbacks"
OWN = (WorkerCallback,)
"""What trainers take whose framework has no callbacks."""


def build_callbacks(nodes: Sequence[Any], builder: Builder, kinds: tuple[Any, ...] = OWN) -> list[Any]:
    """Build the callbacks of a config.

    Args:
        nodes: Mappings with ``_target_``.
        builder: Builds what the config names.
        kinds: What the trainer takes.

    Raises:
        ConfigError: One can't be built, or is not a callback.
    """
    found = []
    for place, node in enumerate(nodes):
        where = f"{KEY}.{place}"
        made = builder.build(node, where)
        if not isinstance(made, kinds):
            raise _no_callback(where, node, type(made))
        if isinstance(made, WorkerCallback):
            check_callback(where, node, type(made), WorkerCallback, made.on_error)
        found.append(made)
    return found


def check_trainer_callbacks(
    nodes: Sequence[Any], builder: Builder, kinds: tuple[Any, ...] = OWN
) -> list[tuple[str, str, Any]]:
    """Refuse callbacks that can't be made, without making one.

    Returns:
        The key, the ``_target_`` and the class or function of each.

    Raises:
        ConfigError: One is not allowed, not there, no callback, or has wrong arguments.
    """
    found = []
    for place, node in enumerate(nodes):
        where = f"{KEY}.{place}"
        if not isinstance(node, Mapping):
            raise ConfigError(
                f"{where}: must be a mapping.", f"Use a class: {KEY}=[{{_target_: my_module.MyCallback}}]"
            )
        builder.check_node(node, where)
        kind = builder.locate(node["_target_"], f"{where}._target_")
        if isinstance(kind, type) and not issubclass(kind, kinds):
            raise _no_callback(where, node, kind)
        if isinstance(kind, type) and issubclass(kind, WorkerCallback):
            check_callback(where, node, kind, WorkerCallback, node.get("on_error", kind.on_error))
        found.append((where, node["_target_"], kind))
    return found


def _no_callback(where: str, node: Mapping[str, Any], kind: type) -> ConfigError:
    package = kind.__module__.partition(".")[0]
    trainer = next((name for name, plugin in plugins() if package in plugin.callback_packages), None)
    if issubclass(kind, Callback):
        hint = "It runs on the driver: put it into run.callbacks."
    elif trainer is not None:
        hint = f"It belongs to trainer={trainer}."
    else:
        hint = "Inherit rtrain.WorkerCallback."
    return ConfigError(f"{where}: {node['_target_']} is not a callback of this trainer.", hint)
