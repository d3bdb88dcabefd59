"""``rtrain fit``: train what a config describes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.cli.arguments import Config, ConfigDir, Overrides, with_short_names
from rtrain.cli.check import check_and_say
from rtrain.process.terminal import check_written

if TYPE_CHECKING:
    from rtrain.config.session import Session
    from rtrain.runs.run import Run


class Cfg(StrEnum):
    """Parts of the composed config that ``--cfg`` shows."""

    job = "job"
    hydra = "hydra"
    all = "all"


class Info(StrEnum):
    """Parts of what Hydra knows that ``--info`` shows."""

    all = "all"
    config = "config"
    defaults = "defaults"
    defaults_tree = "defaults-tree"
    plugins = "plugins"
    searchpath = "searchpath"


def with_optional_values(words: Sequence[str]) -> list[str]:
    """Give ``--info`` its default, ``all``: Hydra allows it without a value, Typer doesn't."""
    out: list[str] = []
    for position, word in enumerate(words):
        out.append(word)
        following = words[position + 1] if position + 1 < len(words) else ""
        if word in ("--info", "-i") and following not in tuple(Info):
            out.append("all")
    return out


def fit(
    config: Config,
    overrides: Overrides = None,
    multirun: Annotated[bool, typer.Option("--multirun", "-m", help="Train every combination: lr=0.1,0.01")] = False,
    cfg: Annotated[Cfg | None, typer.Option("--cfg", "-c", help="Show the composed config and exit.")] = None,
    resolve: Annotated[bool, typer.Option("--resolve", help="With --cfg: resolve interpolations.")] = False,
    package: Annotated[str | None, typer.Option("--package", "-p", help="With --cfg: show only this part.")] = None,
    info: Annotated[Info | None, typer.Option("--info", "-i", help="Show information from Hydra and exit.")] = None,
    config_dir: ConfigDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check without training, like rtrain check.")] = False,
) -> None:
    """Train what CONFIG describes, with OVERRIDES. Options and overrides can be in any order."""
    from rtrain.config.session import Session
    from rtrain.schemas import schemas

    if (resolve or package) and cfg is None:
        raise typer.BadParameter("--resolve and --package go with --cfg job, hydra or all")
    with Session(config, with_short_names(overrides or []), schemas(), config_dir) as session:
        if cfg is not None:
            typer.echo(session.show_cfg(cfg.value, package, resolve), nl=False)
            check_written()
        elif info is not None:
            typer.echo(session.show_info(info.value), nl=False)
            check_written()
        elif dry_run:
            check_and_say(session, multirun=multirun, with_data=True)
        else:
            _train(session, multirun)


def _train(session: Session, multirun: bool) -> None:
    from rtrain.displays.run import make_display
    from rtrain.training.fit import fit_session

    if multirun:
        from rtrain.cli.sweep import train_sweep

        train_sweep(session)
        return
    with make_display() as display:
        end_with([fit_session(session, display)])


def end_with(runs: Sequence[Run]) -> None:
    """Leave with the exit code that tells how runs have ended; a copy that is not complete has failed."""
    from rtrain.runs.status import Status

    worst = max((Status(run.status).exit_code or int(run.manifest.lacks_copy) for run in runs), default=0)
    if worst:
        raise typer.Exit(worst)
