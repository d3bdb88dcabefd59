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
        Path | None, typer.Option("--output", "-o", help="The config to write; else it is named after the table.")
    ] = None,
) -> None:
    """Look at a table and write a first config for it, with what was found as comments.

    It trains boosted trees as it is: columns that can't be features are left out, and a part of the rows says when
    to stop.
    """
    from rtrain.first_config.write import write_first_config

    path = write_first_config(dataset, label, output)
    say_as_it_is(path.read_text(encoding="utf-8"))
    say(f"written to {path}\nnext    rtrain fit {shlex.quote(str(path))}")
