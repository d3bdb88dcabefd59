"""``rtrain trainers`` and ``rtrain datasets``: what is installed, what to install for the rest, and every key."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.errors import ConfigError
from rtrain.process.terminal import check_written, say
from rtrain.text.wrapping import room

if TYPE_CHECKING:
    from rtrain.plugins import PluginInfo


def trainers(trainer: Annotated[str | None, typer.Argument(help="Show all keys of this trainer.")] = None) -> None:
    """List the trainer plugins, or the keys of one."""
    from rtrain.trainers import registry

    _print(registry.describe(), registry.confs(), trainer, "trainer")


def datasets(dataset: Annotated[str | None, typer.Argument(help="Show all keys of this source.")] = None) -> None:
    """List the dataset sources, or the keys of one."""
    from rtrain.datasets import registry

    _print(registry.describe(), registry.confs(), dataset, "dataset")


def check_name(name: str, names: Collection[str], group: str) -> None:
    """Check that a trainer, or a source, of this name is installed.

    Raises:
        ConfigError: None is.
    """
    if name not in names:
        raise ConfigError(f"there is no {group} '{name}'.", nearest_or_all(name, names))


def _print(infos: Sequence[PluginInfo], confs: Mapping[str, type], name: str | None, group: str) -> None:
    if name is not None:
        check_name(name, confs, group)
    width = max(len(info.name) for info in infos)
    for info in infos:
        if name in (None, info.name):
            say(f"{info.name:<{width}}  {info.summary}  [{_state(info)}]")
    if name is not None:
        _print_keys(confs[name], group)
    check_written()


def _print_keys(conf: type, group: str) -> None:
    from rtrain.config.reference.key_docs import key_docs

    for key in key_docs(conf):
        default = "" if key.default is None else f" = {key.default}"
        say(f"\n{group}.{key.name}: {key.kind}{default}")
        for line in wrap(key.text, room(100, 4, sys.stdout)):
            say(f"    {line}")


def _state(info: PluginInfo) -> str:
    if info.installed:
        return "ready"
    if info.broken:
        return "broken"
    how = f": pip install 'rtrain[{info.extra}]'" if info.extra else ""
    return f"needs {', '.join(info.missing)}{how}"
