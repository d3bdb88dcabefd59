"""``rtrain.fit`` and ``rtrain.resume``."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Any

from rtrain.api.turns import own_turn
from rtrain.callers_view import CallersView
from rtrain.config.calls.opened import Config, opened_call
from rtrain.config.calls.overrides import Overrides
from rtrain.config.files.locations import shown
from rtrain.config.session import Session
from rtrain.displays.notebook import observing, run_display
from rtrain.errors import ConfigError
from rtrain.history.references import run_or_url
from rtrain.process.interrupts import AT_ONCE, BY_CTRL_C
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.schemas import schemas
from rtrain.sweeps.record.sweep_record import is_sweep
from rtrain.training.fit import fit_session, resuming_session
from rtrain.training.local_copy import local_run


def fit(
    config: Config,
    overrides: Overrides = (),
    *,
    config_dir: str | os.PathLike[str] | None = None,
    quiet: bool | None = None,
    **short: Any,
) -> Run:
    """Train what ``config`` describes and return the run: ``rtrain.fit("mlp", epochs=3, model={"hidden": [8]})``.

    Args:
        config: Path of a YAML file, the name of one in ``./configs`` or built in, or its content as a mapping (an
            OmegaConf ``DictConfig``, too), which belongs to the current folder.
        overrides: ``"optimizer.lr=0.1"``, a list of such texts, or a mapping, ``{"optimizer.lr": 0.1}``. Values are
            None, bools, numbers, texts, lists and mappings; a mapping is merged into what the config has.
        config_dir: One more folder to look config groups up in.
        quiet: Show nothing of the run. None: show its progress in IPython and notebooks only.
        short: Overrides whose keys are names: ``epochs=3``. They win over ``overrides``.

    Raises:
        ConfigError: The config is wrong; nothing was started or written.
        TrainingError: Training failed; ``run`` and ``run_dir`` of the error are the run.
        KeyboardInterrupt: Ctrl-C ended the run, which was saved first and can be resumed.

    Warns:
        UserWarning: What the command line shows as a note: a callback that failed with ``on_error`` ``warn``, say. A
            display shows it as a note instead.
    """
    folder = None if config_dir is None else os.fspath(config_dir)
    with (
        CallersView(),
        own_turn(),
        opened_call("fit", config, overrides, short) as call,
        Session(call.source, call.words, schemas(), folder, call=call) as session,
        observing(run_display(quiet, call), call) as observer,
    ):
        run = fit_session(session, observer)
    return _unless_interrupted(run)


def resume(
    run: str | os.PathLike[str],
    overrides: Overrides = (),
    *,
    trust: bool = False,
    quiet: bool | None = None,
    **short: Any,
) -> Run:
    """Resume a run from its newest checkpoint, and return it.

    Args:
        run: The run, its directory, a short name of it (``last``), or the URL of its copy (``run.storage``), which is
            brought here.
        overrides: What is to change, in each form that ``fit`` takes: ``{"trainer.max_epochs": 10}`` say.
        trust: Run what its config names, even if another account wrote it.
        quiet: Show nothing of the run. None: show its progress in IPython and notebooks only.
        short: Changes whose keys are names: ``epochs=10``. They win over ``overrides``.

    Raises:
        ConfigError: It is not a run directory, is another user's, or can't be resumed with these changes; nothing was
            started or written.
        TrainingError: Training failed; ``run`` and ``run_dir`` of the error are the run.
        KeyboardInterrupt: Ctrl-C ended the run, which was saved first and can be resumed again.

    Warns:
        UserWarning: What differs from before; that nothing is left to train, and how to extend the run. A display
            shows it as a note instead.
    """
    with (
        CallersView(),
        own_turn(),
        opened_call("resume", os.fspath(run), overrides, short) as call,
        observing(run_display(quiet, call), call) as observer,
    ):
        place = run_or_url(call.place)
        if is_sweep(Path(place)):
            command = f"rtrain resume {quote(shown(Path(place)))}"
            hint = f"Resume it with the rtrain.sweep call that started it, or on the command line with {command}"
            raise ConfigError(f"{shown(Path(place))} is a sweep.", hint)
        run_dir = local_run(place, observer.notice, trust=trust)
        with resuming_session(run_dir, call.words, trust=trust, call=call) as session:
            resumed = fit_session(session, observer, resumed=run_dir)
    return _unless_interrupted(resumed)


def _unless_interrupted(run: Run) -> Run:
    """Return a run unless Ctrl-C ended it: a loop over runs ends with it, too.

    Raises:
        KeyboardInterrupt: It did.
    """
    if run.status == Status.INTERRUPTED and run.manifest.exit_reason in (BY_CTRL_C, AT_ONCE):
        raise KeyboardInterrupt(f"the run was saved; to resume it: rtrain.resume({str(run.path)!r})")
    return run
