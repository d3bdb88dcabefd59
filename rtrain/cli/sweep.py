"""Sweeps on the command line: ``rtrain fit --multirun``, ``rtrain resume SWEEP`` and ``rtrain sweep show``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.cli.usage.errors import Command, Group
from rtrain.process.terminal import say

if TYPE_CHECKING:
    from rtrain.config.session import Session
    from rtrain.sweeps.observer import SweepObserver

sweeps = typer.Typer(cls=Group, help="Inspect sweeps.", no_args_is_help=True)


@sweeps.callback()
def options() -> None:
    """Inspect sweeps."""


@sweeps.command("show", cls=Command)
def show(
    sweep: Annotated[
        str,
        typer.Argument(
            help="A sweep: its folder, last, last:NAME, its short id, or the URL of its copy.", metavar="SWEEP"
        ),
    ],
) -> None:
    """Show the trials of SWEEP, best first, which parameters mattered, and the command that trains the best one."""
    from rtrain.displays.sweep_lines import sweep_report
    from rtrain.history.opening import record_of
    from rtrain.sweeps.record.sweep_record import load_record

    with record_of(sweep) as folder:
        say("\n".join(sweep_report(load_record(folder))))


def find_sweep_folder(place: str, *, trust: bool) -> Path | None:
    """Return the folder of a sweep that is named by it, or by the URL of its copy, which is brought here; else None."""
    from rtrain.storage.stores import is_url
    from rtrain.sweeps.record.sweep_record import is_sweep

    if is_url(place):
        from rtrain.sweeps.record.remote import fetch_sweep

        return fetch_sweep(place, lambda text: say(f"note: {text}", err=True), trust=trust)
    return Path(place) if is_sweep(Path(place)) else None


def resume_sweep(folder: Path, overrides: Sequence[str], *, trust: bool) -> None:
    """Resume a sweep, then exit with the code of its outcome."""
    from rtrain.sweeps.record.folder import resuming_sweep

    with resuming_sweep(folder, overrides, trust=trust) as session:
        train_sweep(session, folder.absolute())


def train_sweep(session: Session, folder: Path | None = None) -> None:
    """Train what a command with ``--multirun`` asks for; leave with the exit code that tells how it ended."""
    from rtrain.runs.status import Status
    from rtrain.sweeps.sweep import run_sweep

    with sweep_display() as display:
        record = run_sweep(session, display, folder)
    if code := Status(record.status).exit_code or int(record.lacks_copy):
        raise typer.Exit(code)


@contextmanager
def sweep_display() -> Iterator[SweepObserver]:
    """Return the display that fits the terminal; it is taken down when the block ends."""
    if not sys.stdout.isatty():
        from rtrain.displays.sweep_lines import PlainSweepDisplay

        yield PlainSweepDisplay()
        return
    from rtrain.displays.sweep_live import LiveSweepDisplay

    with LiveSweepDisplay() as display:
        yield display
