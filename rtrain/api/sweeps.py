"""``rtrain.sweep``: what ``rtrain fit --multirun`` does."""

from __future__ import annotations

import os
from typing import Any

from rtrain.api.sweep_result import SweepResult
from rtrain.api.turns import own_turn
from rtrain.callers_view import CallersView
from rtrain.config.calls.opened import Config, opened_call
from rtrain.config.calls.overrides import Overrides
from rtrain.config.session import Session
from rtrain.displays.notebook import observing, sweep_display
from rtrain.schemas import schemas
from rtrain.sweeps.sweep import run_sweep


def sweep(
    config: Config,
    overrides: Overrides = (),
    *,
    config_dir: str | os.PathLike[str] | None = None,
    quiet: bool | None = None,
    **short: Any,
) -> SweepResult:
    """Train every trial that ``overrides`` and the section ``sweep`` ask for: ``lr=rtrain.choice(0.1, 0.01)``.

    Args:
        config: Path of a YAML file, the name of one in ``./configs`` or built in, or its content as a mapping.
        overrides: In each form that ``fit`` takes. ``"lr=0.1,0.01"`` has several values; in a mapping,
            ``{"lr": rtrain.choice(0.1, 0.01)}`` has, as a list may be one value.
        config_dir: One more folder to look config groups up in.
        quiet: Show nothing of the sweep. None: show its progress in IPython and notebooks only.
        short: Overrides whose keys are names. They win over ``overrides``.

    Returns:
        The trials and the best one of them. A trial that failed says so there, and raises nothing.

    Raises:
        ConfigError: Something is wrong with a trial; none has started.
        KeyboardInterrupt: Ctrl-C ended the sweep; the same call resumes it.
    """
    folder = None if config_dir is None else os.fspath(config_dir)
    with (
        CallersView(),
        own_turn(),
        opened_call("sweep", config, overrides, short) as call,
        Session(call.source, call.words, schemas(), folder, call=call) as session,
        observing(sweep_display(quiet, call), call) as observer,
    ):
        record = run_sweep(session, observer)
    if record.by_ctrl_c:
        raise KeyboardInterrupt(f"the sweep was saved in {record.folder}; the same call resumes it")
    return SweepResult(record.folder)
