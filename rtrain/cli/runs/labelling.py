"""``rtrain runs tag`` and ``note``: write on runs what their configs did not say."""

from __future__ import annotations

from typing import Annotated

import typer

from rtrain.cli.runs.arguments import Run
from rtrain.terminal import say


def tag(
    run: Run,
    tags: Annotated[list[str] | None, typer.Argument(metavar="TAG", help="Tags to add.")] = None,
    *,
    remove: Annotated[list[str] | None, typer.Option("--remove", "-r", metavar="TAG", help="Remove this tag.")] = None,
) -> None:
    """Add tags to RUN, or remove them.

    Its tags are printed. A run can be tagged while it is running.
    """
    from rtrain.history.index import read_row
    from rtrain.history.references import existing_run
    from rtrain.runs.labels import change_tags

    row = read_row(existing_run(run))
    for one in remove or ():
        if one not in row.get("tags"):
            say(f"note: {row.id} has no tag '{one}'.", err=True)
    if tags or remove:
        change_tags(row.path, tags or (), remove or ())
        row = read_row(row.path)
    say(" ".join(row.get("tags")) or "no tags")


def note(
    run: Run,
    text: Annotated[str | None, typer.Argument(help="The note, in place of the one before; '' for none.")] = None,
) -> None:
    """Write a note on RUN, or print the one it has."""
    from rtrain.history.index import read_row
    from rtrain.history.references import existing_run
    from rtrain.runs.labels import change_note

    row = read_row(existing_run(run))
    if text is not None:
        change_note(row.path, text)
    else:
        say(row.get("note") or "no note")
