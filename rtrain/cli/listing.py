"""``rtrain trainers`` and ``rtrain datasets``: what is installed, and what to install for the rest."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def trainers() -> None:
    """List the trainer plugins."""
    from rtrain.trainers.registry import describe

    _print([(info.name, info.summary, info.missing, info.extra) for info in describe()])


def datasets() -> None:
    """List the dataset sources."""
    from rtrain.datasets.registry import describe

    _print([(info.name, info.summary, info.missing, info.extra) for info in describe()])


def _print(rows: Sequence[tuple[str, str, Sequence[str], str | None]]) -> None:
    width = max(len(name) for name, *_ in rows)
    for name, summary, missing, extra in rows:
        typer.echo(f"{name:<{width}}  {summary}  [{_state(missing, extra)}]")


def _state(missing: Sequence[str], extra: str | None) -> str:
    if not missing:
        return "ready"
    how = f": pip install 'rtrain[{extra}]'" if extra else ""
    return f"needs {', '.join(missing)}{how}"
