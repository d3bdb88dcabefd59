"""``rtrain runs rm`` and ``gc``: remove runs, their checkpoints, and leftovers."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import Folders, Runs, Where
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError
from rtrain.process.terminal import say
from rtrain.text.printable import printable

EXAMPLES = """e.g. rtrain runs rm last, or rtrain runs rm --where 'status == failed and started < "30 days ago"'"""
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def rm(
    runs: Runs = None,
    *,
    where: Where = None,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Remove only the checkpoints.")] = False,
    yes: Yes = False,
) -> None:
    """Remove runs, or only their checkpoints.

    The runs are listed, with other runs whose adapters need their checkpoints, and removed after confirmation. A
    running run is never removed. --where finds neither sweeps nor trials.
    """
    from rtrain.history.index import read_row
    from rtrain.history.listing import chosen_rows
    from rtrain.history.query.quantities import size_text
    from rtrain.history.references import existing_run
    from rtrain.history.removal import bytes_of, check_free, dependent_runs, remove_checkpoints, remove_run

    if bool(runs) == bool(where):
        raise ConfigError("no runs are given: name them, or filter with --where.", f"  {EXAMPLES}")
    if where:
        rows = [row for row in chosen_rows(where=where) if row.kind == "run" and row.status != "running"]
    else:
        rows = [read_row(folder) for folder in dict.fromkeys(existing_run(one) for one in runs or ())]
    if not rows:
        say("no run matches --where.")
        return
    check_free(rows)
    sizes = [bytes_of(row.path / "checkpoints" if checkpoints and row.kind != "sweep" else row.path) for row in rows]
    for row, size in zip(rows, sizes, strict=True):
        say(f"  {shown(row.path)}  {row.status}  {size_text(size)}", err=True)
    for run, base in dependent_runs(rows):
        said = f"{shown(run)} needs {shown(base)}, on which its adapters were trained"
        say(f"  {said}: copy that first, and name the copy in trainer.model.pretrained", err=True)
    what = "the checkpoints of " if checkpoints else ""
    _ask(f"Remove {what}{len(rows)} run{'s' if len(rows) != 1 else ''}, {size_text(sum(sizes))}?", yes)
    for row in rows:
        (remove_checkpoints if checkpoints else remove_run)(row.path)
    say(f"removed {what}{', '.join(shown(row.path) for row in rows)}")


def gc(
    folders: Folders = None,
    *,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Also remove runs that rtrain renamed to .damaged-... or .older-...")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove incomplete files that killed processes left behind.

    These are temporary files, incomplete checkpoints and runs whose removal was interrupted.
    """
    from rtrain.history.query.quantities import size_text
    from rtrain.history.removal import bytes_of, find_leftovers, remove_leftover

    found = find_leftovers(folders or (), set_aside=set_aside)
    if not found:
        say("nothing to remove.")
        return
    sizes = [bytes_of(one.path) for one in found]
    for one, size in zip(found, sizes, strict=True):
        say(f"  {shown(one.path)}  {size_text(size)}", err=True)
    _ask(f"Remove {len(found)} leftover{'s' if len(found) != 1 else ''}, {size_text(sum(sizes))}?", yes)
    for one in found:
        remove_leftover(one)
    say(f"removed {size_text(sum(sizes))}")


def _ask(question: str, yes: bool) -> None:
    """Return if the user confirms.

    Raises:
        ConfigError: There is no terminal to ask on.
        typer.Exit: The user declines.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was removed: there is no terminal for the question.", "Skip the question: --yes")
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        say("nothing was removed.", err=True)
        raise typer.Exit(1)
