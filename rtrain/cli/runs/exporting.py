"""``rtrain runs export``: events for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import RUN_HELP, Where
from rtrain.errors import ConfigError
from rtrain.terminal import say


def export(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help=f"{RUN_HELP} None: all.")] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .parquet or .csv file.")],
    where: Where = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Write all events of runs as one table.

    It has a row for each report, and a column for each metric.
    """
    from rtrain.history.export import export_events
    from rtrain.history.index import read_row
    from rtrain.history.listing import chosen_rows
    from rtrain.history.references import existing_run

    rows = chosen_rows([read_row(existing_run(one)).path for one in runs or ()], where, trials=True)
    if not rows:
        raise ConfigError("there is no run to export." if where is None else "no run matches --where.")
    count = export_events(rows, output, force=force)
    num_runs = sum(row.kind != "sweep" for row in rows)
    say(f"{count:,} events of {num_runs:,} run{'s' if num_runs != 1 else ''} -> {output}")
