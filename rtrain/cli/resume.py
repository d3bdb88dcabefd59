"""``rtrain resume``: resume a run."""

from __future__ import annotations

from typing import Annotated

import typer

from rtrain.cli.fit import end_with
from rtrain.cli.runs.arguments import RUN_HELP, Trust


def resume(
    run: Annotated[
        str,
        typer.Argument(help=f"{RUN_HELP} Or a sweep, or the URL of either.", metavar="RUN"),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Config changes: trainer.max_epochs=10 num_workers=4")
    ] = None,
    *,
    trust: Trust = False,
) -> None:
    """Resume RUN from its latest checkpoint, as if it had never been interrupted, or extend a finished run.

    For a sweep, train the unfinished trials.
    """
    from rtrain.cli.sweep import find_sweep_folder, resume_sweep
    from rtrain.history.references import run_or_url

    run = run_or_url(run)
    if (folder := find_sweep_folder(run, trust=trust)) is not None:
        resume_sweep(folder, overrides or [], trust=trust)
        return
    from rtrain.displays.run import make_display
    from rtrain.training.fit import fit_session, resuming_session
    from rtrain.training.local_copy import local_run

    with make_display() as display:
        run_dir = local_run(run, display.notice, trust=trust)
        with resuming_session(run_dir, overrides or [], trust=trust) as session:
            end_with([fit_session(session, display, resumed=run_dir)])
