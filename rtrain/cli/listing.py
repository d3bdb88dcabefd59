"""``rtrain trainers`` and ``rtrain datasets``: what is installed, and what to install for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rtrain.plugins import PluginInfo


def trainers() -> None:
    """List the trainer plugins."""
    from rtrain.trainers.registry import describe

    _print(describe())


def datasets() -> None:
    """List the dataset sources."""
    from rtrain.datasets.registry import describe

    _print(describe())


def _print(infos: Sequence[PluginInfo]) -> None:
    width = max(len(info.name) for info in infos)
    for info in infos:
        typer.echo(f"{info.name:<{width}}  {info.summary}  [{_state(info)}]")


def _state(info: PluginInfo) -> str:
    if info.installed:
        return "ready"
    how = f": pip install 'rtrain[{info.extra}]'" if info.extra else ""
    return f"needs {', '.join(info.missing)}{how}"
