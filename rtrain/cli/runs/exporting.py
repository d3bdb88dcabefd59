"""``rtrain runs export``: events for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import RUN_OR_URL_HELP, Where
from rtrain.errors import ConfigError
from rtrain.process.terminal import say


def export(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help=f"{RUN_OR_URL_HELP} Default: all runs.")
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .parquet or .csv file.")],
    where: Where = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Write all events of runs as one table.

    The table has a row for each report and a column for each metric.
    """
    from rtrain.history.export import export_events
    from rtrain.history.listing import chosen_rows
    from rtrain.history.opening import all_with_trials
    from rtrain.history.query.where import matching

    with all_with_trials(runs or ()) as named:
        rows = matching(named, where) if runs else chosen_rows((), where, trials=True)
        if not rows:
            raise ConfigError("there is no run to export." if where is None else "no run matches --where.")
        count = export_events(rows, output, force=force)
    num_runs = sum(row.kind != "sweep" for row in rows)
    say(f"{count:,} events of {num_runs:,} run{'s' if num_runs != 1 else ''} -> {output}")
