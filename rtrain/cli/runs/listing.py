"""``rtrain runs ls``, ``best`` and ``path``: find runs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import FoldersOrUrls, RunOrUrl, Where
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError
from rtrain.process.terminal import check_written, say, say_as_it_is

Trials = Annotated[bool, typer.Option("--trials", "-t", help="List each trial of a sweep; --where implies it.")]


class Mode(StrEnum):
    """Which way a metric gets better."""

    min = "min"
    max = "max"


def ls(
    folders: FoldersOrUrls = None,
    *,
    where: Where = None,
    sort: Annotated[
        str | None, typer.Option("--sort", "-s", help="Sort by a field; -FIELD sorts in descending order.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Fields to show: lr,seed; +seed adds a field.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of rows; 0 for all.")] = 50,
    trials: Trials = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all fields as JSON.")] = False,
) -> None:
    """List runs and sweeps, newest first.

    Config keys that differ between them are shown as far as they fit the terminal.
    """
    from rtrain.history.choosing import ordered
    from rtrain.history.listing import listed_rows
    from rtrain.history.query.where import matching

    among = listed_rows(folders or (), where, trials=trials)
    rows = ordered(matching(among, where), sort, among)
    some = rows[: limit or None]
    if as_json:
        from rtrain.history.query.columns import as_data
        from rtrain.runs.filesystem.files import to_json

        say_as_it_is(to_json([as_data(row) for row in some], indent=2))
    elif some:
        from rtrain.displays.history.table import table_lines
        from rtrain.displays.history.texts import line_width, show

        show(table_lines(some, columns, line_width(), among))
    else:
        say(_nothing(folders or (), where), err=True)
    if len(rows) > len(some):
        say(f"{len(rows) - len(some):,} more: list all with -n 0, or filter with --where.", err=True)
    check_written()


def _nothing(folders: Sequence[object], where: str | None) -> str:
    from rtrain.history.places import default_folders

    if where is not None:
        return "no run matches --where."
    below = ", ".join(map(str, folders or default_folders()))
    return (
        f"no runs below {below}."
        if below
        else "no runs here: there is no folder 'runs'. Name a folder that contains runs."
    )


def best(
    folders: FoldersOrUrls = None,
    *,
    where: Where = None,
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Rank runs by this metric.")] = None,
    mode: Annotated[Mode | None, typer.Option("--mode", help="Whether lower or higher is better.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of runs to list.")] = 5,
) -> None:
    """List the best runs and trials, best first."""
    from rtrain.displays.history.table import table_lines
    from rtrain.displays.history.texts import line_width, show
    from rtrain.history.choosing import best_rows, find_goal
    from rtrain.history.listing import listed_rows
    from rtrain.history.query.where import matching
    from rtrain.storage.stores import is_url

    among = listed_rows(folders or (), where, trials=True)
    rows = matching(among, where)
    if not rows:
        raise ConfigError(_nothing(folders or (), where))
    goal = find_goal(rows, among, metric, None if mode is None else mode.value)
    found = best_rows(rows, goal)
    if not found:
        say(f"no run has reported {goal.monitor}.", err=True)
        raise typer.Exit(1)
    others = [name for name in map(goal.fact, found[:limit]) if name not in (None, "best")]
    extra = f"+{others[0]}" if others else None
    show(table_lines(found[:limit], extra, line_width(), among))
    say(f"\nbest: {found[0].place if is_url(found[0].place) else shown(found[0].path)}")
    check_written()


def path(run: RunOrUrl) -> None:
    """Print the folder of RUN, or the URL of its copy.

    For scripts: ls $(rtrain runs path last)/checkpoints
    """
    from rtrain.history.labelling import existing_place, row_at
    from rtrain.storage.stores import is_url

    place = existing_place(run)
    say(row_at(place).place if is_url(place) else place)
    check_written()
