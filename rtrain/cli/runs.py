"""``rtrain runs``: look after run directories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

runs = typer.Typer(help="Look after run directories.", no_args_is_help=True)
HARMLESS = ("unfinished", "extra")
"""Problems that lose nothing."""


@runs.callback()
def options() -> None:
    """Look after run directories."""


@runs.command("verify")
def verify(
    run: Annotated[Path, typer.Argument(help="A run directory: runs/<name>/<time>-<id>.", metavar="RUN")],
) -> None:
    """Compare every file of RUN with what was written: say what is missing, damaged or extra. Exit code 1 for loss."""
    from rtrain.runs.verify import verify_run

    found = verify_run(run)
    for finding in found:
        typer.echo(str(finding))
    lost = [finding for finding in found if finding.problem not in HARMLESS]
    typer.echo(f"{run}: {len(lost) or 'nothing'} lost" + (f", {len(found) - len(lost)} to note" if found else ""))
    if lost:
        raise typer.Exit(1)
