"""``rtrain check``: find what is wrong with a config before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.cli.arguments import Config, ConfigDir, Overrides, with_short_names
from rtrain.process.terminal import say
from rtrain.text.printable import printable

if TYPE_CHECKING:
    from rtrain.config.composed import Composed
    from rtrain.config.schema import ScalingConf
    from rtrain.config.session import Session
    from rtrain.config.trials import Trials
    from rtrain.runs.observer import Observer
    from rtrain.trainers.base import Job

MOST_COLUMNS = 10
"""Most columns whose missing values are counted in a line."""


def check(
    config: Config,
    overrides: Overrides = None,
    multirun: Annotated[bool, typer.Option("--multirun", "-m", help="Check a sweep and its trials.")] = False,
    no_data: Annotated[
        bool, typer.Option("--no-data", help="Check only the config, without reading data or building anything.")
    ] = False,
    config_dir: ConfigDir = None,
) -> None:
    """Check the config, its data and what it builds, without training.

    Nothing is written and Ray is not started. The exit code is 2 if something is wrong.
    """
    from rtrain.config.session import Session
    from rtrain.schemas import schemas

    typed = ("rtrain", "check", config, *(["--multirun"] if multirun else []))
    with Session(config, with_short_names(overrides or []), schemas(), config_dir, typed=typed) as session:
        check_and_say(session, multirun=multirun, with_data=not no_data)


def check_and_say(session: Session, *, multirun: bool, with_data: bool) -> None:
    """Check what a command asks for, and print what was found to be right."""
    from rtrain.displays.run import make_display
    from rtrain.run_lines import is_own_loop

    with make_display() as display:
        trials = session.trials() if multirun else None
        composed = session.check() if trials is None else trials.probe
        for notice in composed.notices:
            display.notice(notice)
        job = _checked(composed, trials, display) if with_data else None
    if job is None:
        say("ok: the config is valid (its data was not read)")
        return
    what, info = "the trials" if multirun else "the job", None if job.dataset is None else job.dataset.info
    data = "" if info is None else f" on {info.name} ({sum(info.num_rows.values()):,} rows)"
    is_tried = info is not None and not is_own_loop(vars(job.conf.trainer))
    untried = "" if is_tried else "; its own data loading and training steps were not run"
    say(f"ok: {what} can be trained, with {job.trainer_name}{data}{untried}")
    if info is not None and info.num_missing:
        say(f"missing values: {_counts(info.num_missing)}")
    if wanted := _unchecked_resources(job.conf.scaling):
        say(f"not checked: whether the cluster has {wanted} for each worker")


def _checked(composed: Composed, trials: Trials | None, observer: Observer) -> Job:
    """Return the job that was found to be right; of a sweep, that of the first trial."""
    from rtrain.training.checking import check_composed

    if trials is None:
        return check_composed(composed, observer)[0]
    from rtrain.sweeps.checking import check_sweep

    return check_sweep(trials, observer)


def _unchecked_resources(scaling: ScalingConf) -> str:
    """Return what each worker reserves beyond cores, which only a Ray cluster knows whether it has."""
    from rtrain.cluster.scaling import worker_resources

    wanted = {} if scaling.num_workers == 0 else worker_resources(scaling)
    return ", ".join(f"{amount:g} {name}" for name, amount in wanted.items() if name != "CPU" and amount)


def _counts(num_missing: Mapping[str, int]) -> str:
    """Return how many values of which columns are missing, the most first."""
    most = sorted(num_missing.items(), key=lambda one: -one[1])
    shown = [f"{count:,} of {printable(name, '')}" for name, count in most[:MOST_COLUMNS]]
    more = [f"and {len(most) - MOST_COLUMNS} more columns"] if len(most) > MOST_COLUMNS else []
    return ", ".join([*shown, *more])
