"""``rtrain.sweep``: what ``rtrain fit --multirun`` does, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def sweep(config: str | Path, overrides: Sequence[str] = (), *, config_dir: str | None = None) -> Path:
    """Train every trial that ``overrides`` and the section ``sweep`` ask for, and return the folder of the sweep.

    Args:
        config: Path of a YAML file, or the name of one in ``./configs`` or built in.
        overrides: Hydra overrides, ``["optimizer.lr=0.1,0.01", "sweep.metric=val/accuracy"]`` say.
        config_dir: One more folder to look config groups up in.

    Returns:
        The folder: ``sweep.json`` tells each trial, ``best`` is a link to the run of the best one. A trial that failed
        is told there, too, and raises nothing.

    Raises:
        ConfigError: Something is wrong with a trial; none has started.
    """
    from rtrain.callers_view import CallersView
    from rtrain.config.session import Session
    from rtrain.schemas import schemas
    from rtrain.sweeps.sweep import run_sweep
    from rtrain.training import SilentObserver

    with CallersView(), Session(str(config), overrides, schemas(), config_dir) as session:
        return run_sweep(session, SilentObserver()).folder
