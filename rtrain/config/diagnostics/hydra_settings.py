"""Settings of Hydra's own that have no effect here: refused, with what to use instead."""

from __future__ import annotations

from dataclasses import dataclass

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.errors import IdleKeyError

OFF = ("false", "null", "None", "RUN")
"""Values of those settings that ask for nothing."""


@dataclass(frozen=True)
class Unused:
    """Settings without an effect."""

    keys: tuple[str, ...]
    otherwise: str
    """Why they have none."""
    instead: str
    of_sweeps: bool = False
    """They have one with ``--multirun``."""


UNUSED = (
    Unused(
        ("hydra.job.chdir",),
        "a run stays in the folder where it was started",
        "The files of a run are in run.root_dir: ${hydra:runtime.output_dir} names its folder",
    ),
    Unused(("hydra.mode",), "the command decides this", "Add --multirun for a sweep"),
    Unused(
        ("hydra.sweeper.max_batch_size",), "rtrain plans sweeps itself", "sweep.max_concurrent=N trains N at a time"
    ),
    Unused(
        ("hydra.sweep.dir", "hydra.sweep.subdir", "hydra.sweeper", "hydra.launcher"),
        "this is one run, not a sweep",
        "Add --multirun, or remove it: run.root_dir and run.name set the folder of a run",
        of_sweeps=True,
    ),
    Unused(
        (
            *("hydra.job.num", "hydra.job.id", "hydra.job.override_dirname", "hydra.job.config_name"),
            *("hydra.runtime", "hydra.overrides"),
        ),
        "Hydra sets it itself",
        "Leave it out: run.name names the run",
    ),
    Unused(
        ("hydra.help", "hydra.hydra_help"), "rtrain prints its own help", "Leave it out: rtrain fit --help shows it"
    ),
)


def refuse_unused_settings(request: Request, *, multirun: bool) -> None:
    """Refuse settings of Hydra's that are typed, or set by the config that was asked for, and have no effect.

    Args:
        request: What was asked for.
        multirun: It is a sweep. What only sweeps follow may stand in a file all the same.

    Raises:
        ConfigError: Names the setting, and what to use instead.
    """
    places = SourceMap(request)
    for word in request.words:
        _, key, value = split_word(word.text)
        dotted = key.replace("/", ".")
        found = None if value in OFF else _unused(dotted, multirun=multirun)
        if found is not None:
            _refuse(dotted, found, places.of_word(word.text))
    if request.of_file or "hydra" not in request.primary.path.read_text(encoding="utf-8"):
        return
    for one in (one for one in UNUSED if not one.of_sweeps):
        for key in one.keys:
            place = places.of(key)
            if isinstance(place, FileLocation) and place.value not in OFF:
                _refuse(key, one, place)


def _unused(key: str, *, multirun: bool) -> Unused | None:
    settings = (one for one in UNUSED if not (one.of_sweeps and multirun))
    return next((one for one in settings if any(f"{key}.".startswith(f"{own}.") for own in one.keys)), None)


def _refuse(key: str, found: Unused, place: CliWord | FileLocation | None) -> None:
    said = Diagnostic(f"{key} has no effect: {found.otherwise}", place, note=f"{found.instead}.")
    raise said.as_error(IdleKeyError)
