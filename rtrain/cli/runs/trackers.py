"""``rtrain runs sync``: bring runs that are over to a tracker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rtrain.cli.runs.arguments import Run
from rtrain.process.terminal import say

Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Keys of the logger: tracking_uri=http://host:5000")
]


def sync(
    run: Run, keys: Keys = None, *, to: Annotated[str, typer.Option(metavar="LOGGER", help="csv, mlflow, ...")]
) -> None:
    """Send RUN, or each trial of a sweep, to a tracker. Data that the tracker has is not sent again."""
    from rtrain.history.references import existing_run
    from rtrain.sync import sync as send

    for run_dir in send(
        existing_run(run), to, dict(map(_pair, keys or ())), lambda text: say(f"note: {text}", err=True)
    ):
        say(f"{run_dir}: {to} is up to date")


def _pair(word: str) -> tuple[str, Any]:
    """Return a key of a logger and its value, which is written as in a YAML file."""
    import yaml

    key, sign, value = word.partition("=")
    if not sign:
        raise typer.BadParameter(f"'{word}' is not KEY=VALUE")
    return key, yaml.safe_load(value)
