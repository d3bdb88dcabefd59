"""``rtrain runs verify``, ``upload`` and ``fetch``: whether the files of a run are whole, here and in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import Run
from rtrain.process.terminal import say
from rtrain.text.printable import printable

LEFTOVERS = ("unfinished", "extra", "elsewhere")
"""Problems that lose nothing."""


def verify(run: Run) -> None:
    """Verify the files of RUN against its manifest.

    Files that are missing, damaged or extra are listed. The exit code is 1 if something is lost.
    """
    from rtrain.history.references import find_run
    from rtrain.runs.verify import verify_run
    from rtrain.storage.checking import verify_stored
    from rtrain.storage.fetching import stored_run
    from rtrain.storage.stores import is_url

    found = verify_stored(stored_run(run)) if is_url(run) else verify_run(find_run(run))
    for finding in found:
        say(printable(str(finding)))  # a line each, whatever files are called
    lost = [finding for finding in found if finding.problem not in LEFTOVERS]
    say(f"{run}: {len(lost) or 'nothing'} lost" + (f", {len(found) - len(lost)} to note" if found else ""))
    if lost:
        raise typer.Exit(1)


def upload(
    run: Run,
    to: Annotated[
        str | None, typer.Option(help="Upload to this URL instead of run.storage, e.g. s3://bucket/runs.")
    ] = None,
) -> None:
    """Complete the copy of RUN, or of a sweep, in run.storage.

    A run of another account needs --to.
    """
    from rtrain.history.references import existing_run
    from rtrain.storage.mirror import upload_run
    from rtrain.sweeps.record.remote import upload_sweep
    from rtrain.sweeps.record.sweep_record import is_sweep

    folder = existing_run(run)
    send = upload_sweep if is_sweep(folder) else upload_run
    url, ending = send(folder, to, _note, "--to" if to else "run.storage")
    say(f"{url}: " + ("complete" if ending.complete else f"incomplete: {ending.error}"))
    if not ending.complete:
        raise typer.Exit(1)


def fetch(
    url: Annotated[
        str, typer.Argument(help="The copy of a run or sweep: s3://bucket/runs/<name>/<time>-<id>.", metavar="URL")
    ],
    into: Annotated[
        Path | None, typer.Argument(help="The run directory to create; by default runs/<name>/<id>.")
    ] = None,
) -> None:
    """Download the copy of a run or sweep from its store into a run directory.

    The record, the latest checkpoint and the best one are downloaded. The run may still be running elsewhere.
    """
    from rtrain.storage.fetching import fetch_run, stored_run
    from rtrain.sweeps.record.remote import copy_here

    folder = copy_here(url, into, _note)
    if folder is None:
        run = stored_run(url, "URL")
        folder = into or Path("runs", *run.folder.url.split("/")[-2:])
        fetch_run(run, folder, _note, "URL")
    say(str(folder))


def _note(text: str) -> None:
    say(text, err=True)
