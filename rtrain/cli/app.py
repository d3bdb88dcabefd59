"""The ``rtrain`` application: its commands, and how errors reach the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rtrain.cli import check, fit, init, listing, predict, recipes, resume, schema, smoke, sweep, up
from rtrain.cli.completing import answer, scripts
from rtrain.cli.interrupt import INTERRUPTED
from rtrain.cli.runs.app import runs
from rtrain.cli.usage.dashes import WithOverrides
from rtrain.cli.usage.errors import HELP, Command, Group
from rtrain.cli.usage.say_error import say_error
from rtrain.errors import ConfigError, RtrainError
from rtrain.process.terminal import say
from rtrain.process.variables import arguments_hidden

app = typer.Typer(
    name="rtrain",
    cls=Group,
    context_settings=HELP,
    help="Train models of any framework from a YAML config, on Ray. Each run directory is a full record of its run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("fit", cls=WithOverrides)(fit.fit)
app.command("check", cls=WithOverrides)(check.check)
app.command("init", cls=Command)(init.init)
app.command("resume", cls=WithOverrides)(resume.resume)
app.command("predict", cls=WithOverrides)(predict.predict)
app.command("evaluate", cls=WithOverrides)(predict.evaluate)
app.command("smoke", cls=Command)(smoke.smoke)
app.add_typer(runs, name="runs")
app.add_typer(sweep.sweeps, name="sweep")
app.add_typer(recipes.recipes, name="recipes")
app.command("up", cls=Command)(up.up)
app.command("down", cls=Command)(up.down)
app.command("schema", cls=Command)(schema.schema)
app.command("trainers", cls=Command)(listing.trainers)
app.command("datasets", cls=Command)(listing.datasets)
app.command("completion", cls=Command)(scripts.completion)
app.command("complete", hidden=True)(answer.complete)


def _print_version(wanted: bool) -> None:
    if wanted:
        from rtrain import __version__

        say(f"rtrain {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train models of any framework from a YAML config, on Ray. Each run directory is a full record of its run."""


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    0 is success, 1 a failed run, 2 a wrong command line or config, 130 Ctrl-C and 143 SIGTERM.
    """
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        _check_folder()
        with arguments_hidden():
            code = app(fit.with_optional_values(words), standalone_mode=True)
    except SystemExit as end:
        code = end.code
    except RtrainError as error:
        if os.environ.get("RTRAIN_TRACEBACK"):
            raise
        say_error(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _check_folder() -> None:
    """Find that the current folder is gone before something looks for a file there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise ConfigError("The current folder no longer exists.", "Change to another folder: cd ~") from None
