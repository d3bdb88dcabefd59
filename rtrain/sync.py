"""Send runs that are over to a tracker. This page is the table of contents of ``rtrain runs sync``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.validate import InvalidError, logger_conf
from rtrain.errors import ConfigError, RtrainError
from rtrain.loggers.registry import LOGGERS
from rtrain.runs.filesystem.files import named_errors
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.schemas import schemas
from rtrain.sweeps.record.sweep_record import is_sweep, read_sweep
from rtrain.tracking.delivery import Delivery
from rtrain.tracking.trackers import logged_run, outcome_of

PATIENCE_SECONDS = 60.0
"""How long a tracker may take nothing."""


def sync(folder: Path, to: str, keys: Mapping[str, Any], notice: Callable[[str], None]) -> Iterator[Path]:
    """Send a run, or the trials of a sweep that have started, to a tracker; yield each run that it has now.

    Args:
        folder: A run directory, or the folder of a sweep.
        to: Name of the logger.
        keys: Of the logger; they come before those of the run's config.
        notice: Takes a line for the user.

    Raises:
        ConfigError: There is no such logger or key, or it needs a module that is not installed.
        RunInUseError: The run is still in progress.
        RtrainError: It is not a run, or the tracker lacks a part of it.
    """
    sweep = next((place for place in (folder, folder.parent) if is_sweep(place)), None)
    for run_dir in _trials(folder) if sweep == folder else [folder]:
        manifest = read_manifest(run_dir)
        conf = _conf(to, keys, manifest)
        with ExitStack() as stack:
            with named_errors(run_dir):
                stack.enter_context(locked(run_dir))
            run = logged_run(run_dir, manifest, sweep)
            delivery = Delivery(to, partial(LOGGERS.load(to), conf), run, notice)
            lacks = delivery.finish(outcome_of(run_dir, manifest), PATIENCE_SECONDS, lambda: False)
        if lacks is not None:
            raise RtrainError(f"{to} lacks a part of {run_dir} ({lacks}).", "The same command sends what is missing.")
        yield run_dir


def _trials(sweep: Path) -> list[Path]:
    places = [sweep / str(trial["name"]) for trial in read_sweep(sweep)["trials"]]
    return [place for place in places if (place / MANIFEST).exists()]


def _conf(to: str, keys: Mapping[str, Any], manifest: Manifest) -> Any:
    if to not in (known := schemas().logger):
        raise ConfigError(f"there is no logger '{to}'.", nearest_or_all(to, known))
    own = (manifest.config.get("run", {}).get("loggers") or {}).get(to) or {}
    try:
        return logger_conf(to, {**own, **keys}, schemas())
    except InvalidError as error:
        first = error.problems[0]
        hint = nearest_or_all(first.word, first.known) if first.word is not None and first.known else None
        raise ConfigError(f"{first.key}: {first.message}", hint) from None
