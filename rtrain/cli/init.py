"""``rtrain init``: write a first config for a table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rtrain.process.terminal import say, say_as_it_is


def init(
    dataset: Annotated[str, typer.Option("--dataset", help="A table: a .csv, .parquet or .json file.")],
    label: Annotated[str | None, typer.Option("--label", help="The column to predict.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The config to write; by default named after the table.")
    ] = None,
) -> None:
    """Inspect a table and write a first config for it, with the findings as comments.

    The config trains boosted trees. Columns that can't be features are dropped; validation rows decide when to stop.
    """
    from rtrain.config.files.locations import shown
    from rtrain.first_config.write import write_first_config

    path = write_first_config(dataset, label, output)
    say_as_it_is(path.read_text(encoding="utf-8"))
    say(f"written to {path}\nnext    rtrain fit {shlex.quote(shown(path))}")
