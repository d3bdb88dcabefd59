"""``rtrain runs tag`` and ``note``: write on runs what their configs did not say."""

from __future__ import annotations

from typing import Annotated

import typer

from rtrain.cli.runs.arguments import RunOrUrl
from rtrain.terminal import say


def tag(
    run: RunOrUrl,
    tags: Annotated[list[str] | None, typer.Argument(metavar="TAG", help="Tags to add.")] = None,
    *,
    remove: Annotated[list[str] | None, typer.Option("--remove", "-r", metavar="TAG", help="Remove this tag.")] = None,
) -> None:
    """Add tags to RUN, or remove them.

    Its tags are printed. A run can be tagged while it is running.
    """
    from rtrain.history.labelling import existing_place, relabel, row_at

    place = existing_place(run)
    row = row_at(place)
    for one in remove or ():
        if one not in row.get("tags"):
            say(f"note: {row.id} has no tag '{one}'.", err=True)
    if tags or remove:
        row = relabel(place, lambda labels: labels.tagged(tags or (), remove or ()))
    say(" ".join(row.get("tags")) or "no tags")


def note(
    run: RunOrUrl,
    text: Annotated[str | None, typer.Argument(help="The note, in place of the one before; '' for none.")] = None,
) -> None:
    """Write a note on RUN, or print the one it has."""
    from rtrain.history.labelling import existing_place, relabel, row_at

    place = existing_place(run)
    row = row_at(place)
    if text is not None:
        relabel(place, lambda labels: labels.noted(text))
    else:
        say(row.get("note") or "no note")
