"""All trackers of one run: ``run.loggers``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import join
from typing import Any

from rtrain.config.run_conf import RunConf
from rtrain.config.secrets.redact import Redactor
from rtrain.loggers.base import LoggedRun, Outcome
from rtrain.loggers.registry import LOGGERS
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.filesystem.files import to_json
from rtrain.runs.manifest import Manifest, utc_now
from rtrain.runs.nested import flat
from rtrain.tracking.delivery import Delivery


def check_loggers(conf: RunConf) -> None:
    """Refuse loggers that can't be used as things are.

    Raises:
        ConfigError: One needs a module that is not installed.
    """
    for name in conf.loggers or ():
        LOGGERS.load(name)


class Trackers:
    """Sends a run to the trackers that its config names.

    Args:
        conf: Names them.
        run: The facts about the run that they receive.
        redact: Removes secrets from their messages.
        notice: Takes a line for the user.
    """

    def __init__(self, conf: RunConf, run: LoggedRun, redact: Redactor, notice: Callable[[str], None]) -> None:
        self._patience = conf.loggers_timeout_seconds
        self._tell, self._redact = notice, redact
        self._deliveries = [
            Delivery(name, partial(LOGGERS.load(name), own), run, self._notice, conf.system_metrics_seconds)
            for name, own in (conf.loggers or {}).items()
        ]

    def finish(self, run_dir: Path, manifest: Manifest, hurry: Callable[[], bool]) -> None:
        """Wait until they have everything, and say loudly what they lack.

        Args:
            run_dir: The run directory.
            manifest: Says how the run ended.
            hurry: Whether to give up the rest immediately.
        """
        outcome = outcome_of(run_dir, manifest)
        for one in self._deliveries:
            lacks = one.finish(outcome, self._patience, hurry)
            if lacks is not None:
                self._notice(f"{one.name} LACKS the end of this run ({lacks}); everything is in {run_dir}")

    def _notice(self, text: str) -> None:
        self._tell(self._redact(text))


def logged_run(run_dir: Path, manifest: Manifest, sweep: Path | None) -> LoggedRun:
    """Return the facts about a run that trackers receive.

    Args:
        run_dir: The run directory.
        manifest: As it is when the run starts, or is resumed.
        sweep: The folder of the sweep that it is a trial of.
    """
    changed = [key for resume in manifest.resumes for key in resume.get("changed", ())]
    parameters = {name: _parameter(value) for name, value in flat(manifest.config)}
    section = manifest.config.get("run", {})
    facts = {
        "command": join(manifest.command),
        "run_dir": str(run_dir),
        "trainer": str(parameters.get("trainer.type")),
        "rtrain": str(manifest.versions.get("rtrain", "")),
        "host": str(manifest.host.get("hostname", "")),
        **({"git_commit": manifest.git["commit"]} if manifest.git and manifest.git.get("commit") else {}),
    }
    return LoggedRun(
        id=manifest.run_id,
        name=manifest.run_name,
        folder=run_dir,
        started_at=manifest.started_at,
        parameters=parameters,
        changed={name: value for name, value in parameters.items() if _is_among(name, changed)},
        facts=facts,
        tags=tuple(section.get("tags", ())),
        notes=section.get("notes"),
        sweep=sweep,
    )


def outcome_of(run_dir: Path, manifest: Manifest) -> Outcome:
    """Return how a run ended, as it is reported to trackers."""
    return Outcome(
        status=manifest.status,
        reason=manifest.exit_reason,
        ended_at=manifest.ended_at or utc_now(),
        checkpoints=_checkpoints(run_dir, manifest),
    )


def _parameter(value: Any) -> Any:
    """Return a value of the config as trackers take it: lists and empty mappings as JSON."""
    return value if value is None or isinstance(value, str | int | float) else to_json(value)


def _is_among(name: str, changed: Any) -> bool:
    """Return whether a key is one of those that changed, or below one: ``key: before -> now``."""
    keys = (str(one).partition(":")[0] for one in changed)
    return any(f"{name}.".startswith(f"{key}.") for key in keys)


def _checkpoints(run_dir: Path, manifest: Manifest) -> dict[str, Path]:
    found = {}
    if manifest.best_checkpoint is not None:
        found["best"] = run_dir / manifest.best_checkpoint
    if manifest.checkpoints:
        found["last"] = checkpoints_dir(run_dir) / manifest.checkpoints[-1]["name"]
    return found
