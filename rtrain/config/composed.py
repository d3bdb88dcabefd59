"""What composing and checking a command line ends with: one job, as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtrain.config.diagnostics.screen import CliWord
from rtrain.config.nested import without
from rtrain.config.schema import RtrainConf
from rtrain.config.secrets.redact import Redactor
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.gate import Gate
from rtrain.config.targets.moved import with_names_of_before
from rtrain.runs.manifest import CONFIG_NAME


@dataclass(frozen=True, kw_only=True)
class Composed:
    """One job: composed, resolved and checked; plain data."""

    conf: RtrainConf
    """Dataclasses all the way down; ``dataset`` may be None."""
    resolved: dict[str, Any]
    """For the record: resolved, environment variables symbolic, secrets masked."""
    yaml: str
    """The same as a YAML that ``rtrain fit`` takes."""
    config_name: str
    config_path: Path | None
    """None for a built-in config."""
    overrides: tuple[str, ...]
    """In full words, secrets masked."""
    run_dir: Path
    """Where the job is recorded, unless it resumes another run."""
    project_root: Path
    """Folder whose modules the config may name; importable on the driver, and to be made so on workers."""
    allow: tuple[str, ...]
    """Modules that a ``_target_`` may come from beyond the known frameworks and the project."""
    redact: Redactor
    """Takes the values of its secrets out of texts."""
    gate: Gate
    """What it may have called, opened and set."""
    env: dict[str, str]
    """Environment variables that the job sets."""
    config_dir: str | None = None
    """One more folder of config groups."""
    sweep: str | None = None
    """Name of the sweep's folder, of a trial."""
    notices: tuple[str, ...] = ()
    """What whoever asked for it should know."""
    awaiting: Mapping[str, CliWord | None] = field(default_factory=dict)
    """Keys that are set and of which only the rows tell whether they have an effect; with their words, if typed."""
    typed: frozenset[str] = frozenset()
    """Keys that the command line sets to something, or that a sweep varies."""
    given: bool = False
    """Whether the config is a mapping of a call from Python."""
    of_run: bool = False
    """Whether the config is one that a run recorded."""
    trust: bool = False
    """Whether a run that it resumes may be read as if this account had written it."""

    @property
    def builder(self) -> Builder:
        """What builds the targets of the job."""
        return Builder(self.allow)

    @property
    def config_hash(self) -> str:
        """What two jobs share that train the same; how a run is taken up makes no difference."""
        return self.hash_without(())

    def hash_without(self, keys: Collection[str]) -> str:
        """Return what ``config_hash`` would be if the config had no such keys, each with dots."""
        resolved = without(self.resolved, frozenset(keys))
        run = {key: value for key, value in resolved["run"].items() if key != "resume_data"}
        hashed = {**resolved, "run": {**run, "resume": None}}
        canonical = with_names_of_before(json.dumps(hashed, sort_keys=True, default=str))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def command(self) -> list[str]:
        """The command line that trains it, secrets masked; of a mapping, with the config that the run records."""
        if self.given:
            return ["rtrain", "fit", str(self.run_dir / CONFIG_NAME)]
        more = [] if self.config_dir is None else ["--config-dir", self.config_dir]
        return ["rtrain", "fit", str(self.config_path or self.config_name), *more, *self.overrides]

    def command_resuming(self, run_dir: Path) -> list[str]:
        """Return the command line that resumed a run, secrets masked."""
        if self.config_path is None or self.config_path.parent != run_dir.absolute():
            return self.command  # run.resume
        return ["rtrain", "resume", str(self.config_path.parent), *self.overrides]
