"""``rtrain runs tag`` and ``note``: write on runs what their configs did not say."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import RunOrUrl
from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError
from rtrain.process.terminal import say


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

    if not all(one.strip() for one in tags or ()):
        raise ConfigError("a tag can't be empty.", to_try(shlex.join(["rtrain", "runs", "tag", run, "good"])))
    place = existing_place(run)
    row = row_at(place)
    there = [one for one in remove or () if one in row.get("tags")]
    for one in remove or ():
        if one not in there:
            say(f"note: {row.id} has no tag '{one}'.", err=True)
    if tags or there:
        row = relabel(place, lambda labels: labels.tagged(tags or (), there))
    say(" ".join(row.get("tags")) or "no tags")


def note(
    run: RunOrUrl,
    text: Annotated[
        str | None, typer.Argument(help="The note, which replaces the previous one; '' removes it.")
    ] = None,
) -> None:
    """Write a note on RUN, or print its note."""
    from rtrain.history.labelling import existing_place, relabel, row_at

    place = existing_place(run)
    row = row_at(place)
    if text is not None:
        relabel(place, lambda labels: labels.noted(text))
    else:
        say(row.get("note") or "no note")
