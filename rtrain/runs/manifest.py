"""The manifest of a run: its request, its results, and the location of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

from rtrain.errors import RtrainError
from rtrain.runs.filesystem.files import MANIFEST as MANIFEST
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.runs.filesystem.plain_files import is_plain_name, read_json
from rtrain.runs.status import Status

SCHEMA_VERSION = 1
CONFIG_NAME = "config.yaml"
"""Of the config from which a run is resumed."""


_KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "a text"),
    "int": (int, "a whole number"),
    "list": (list, "a list"),
    "dict": (dict, "a mapping"),
    "Mapping": (dict, "a mapping"),
}
"""What JSON has for the types of a manifest's fields."""

SECTIONS = ("trainer", "dataset", "datasets", "scaling")
"""Of a recorded config, which may be null."""


def utc_now() -> str:
    """Return the time as UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(kw_only=True)
class Manifest:
    """The record of one run, kept in ``manifest.json``. A run that was killed stays ``running``."""

    __pydantic_config__: ClassVar[dict[str, bool]] = {"use_attribute_docstrings": True}
    """For whoever makes a JSON schema of this class: the docstrings below are the descriptions."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    """Name of the run directory."""
    run_name: str
    status: str = Status.RUNNING
    """``running``, ``succeeded``, ``failed``, ``interrupted`` (Ctrl-C) or ``preempted`` (SIGTERM, SIGUSR1)."""
    exit_reason: str | None = None
    """Why the run ended, in one line; None while it runs."""
    error: dict[str, Any] | None = None
    """Of a failed run: ``type``, ``message``, ``rank`` (None for the driver), ``traceback`` and ``frames``: the user's
    own ``lines``, innermost first, and how many other frames there are."""
    command: list[str]
    """The command line, with secrets masked."""
    config_file: str | None
    config_hash: str
    """sha256 over the resolved config."""
    config: Mapping[str, Any]
    """The resolved config; environment variables stay symbolic, secrets are masked."""
    overrides: list[str]
    project_root: str = ""
    """Folder whose modules the config may name."""
    seed: int
    versions: Mapping[str, str]
    """Versions of Python, rtrain and every framework that is installed."""
    git: Mapping[str, Any] | None
    """``commit``, ``dirty`` and, if dirty, ``diff_sha256`` of the project that holds the config; None outside git.

    ``diff_sha256`` is None where git can't compare: objects of a partial clone are missing, say.
    """
    host: Mapping[str, Any]
    """Name, platform, cores and memory of the machine that started the run, and the process id."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    """Workers asked for, and what the cluster has."""
    dataset: Mapping[str, Any] | None = None
    """Source, fingerprint, rows per split, classes, and whether it was resident or streamed."""
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By rank: host, process id, device, threads, and rows per split."""
    model: dict[str, Any] = field(default_factory=dict)
    """The trainer's information about the model: importance of the features by name, number of trees."""
    started_at: str = field(default_factory=utc_now)
    ended_at: str | None = None
    timings_seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by stage: ``prepare``, ``start``, ``train``, ``total``."""
    step: int = 0
    epoch: int = 0
    metrics: dict[str, float | None] = field(default_factory=dict)
    """The newest value of each metric; null for NaN and infinity."""
    values: dict[str, Any] = field(default_factory=dict)
    """The latest non-numeric values that a custom train loop reported: texts, lists, null."""
    best: dict[str, Any] | None = None
    """``monitor``, ``mode``, ``value``, ``step`` and ``epoch`` of the best checkpoint."""
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    """What is on disk, oldest first: name, step, epoch, metrics, and the size and sha256 of each file."""
    best_checkpoint: str | None = None
    """Path of the best checkpoint below the run directory."""
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """Each start of the workers: when, how many, from which checkpoint, and ``ended_because`` if it ended before its
    time: ``kind``, ``message``, ``rank`` and ``type``."""
    resumes: list[dict[str, Any]] = field(default_factory=list)
    """Each time the run was taken up again: when, by which command, what of the config had changed, how it had ended
    before (``status``, ``exit_reason``), and, where the code changed, what of ``git`` and ``versions`` it was until
    then: ``code_before``."""
    config_sha256: str | None = None
    """Of ``config.yaml``; None in runs of older versions."""
    events_lost_until: int | None = None
    """The step up to which reports are missing, if ``events.jsonl`` was deleted or moved during the run."""
    storage: dict[str, Any] | None = None
    """The copy of the run (``run.storage``): ``url``, and whether it is ``complete``; if it is not although the run is
    over, the ``missing`` checkpoints and the ``error``. The copy itself says when it was ``copied_at``."""
    parent_run: str | None = None
    """What the weights come from: ``run.init_from``, or the trial whose checkpoint a sweep's scheduler took last."""
    lineage: list[dict[str, Any]] = field(default_factory=list)
    """For a trial, each time it continued from another trial's checkpoint: ``time``, ``run`` (of the other trial),
    ``checkpoint``, ``step``, and ``changes``, the values that it tries from then on."""
    files: dict[str, Any] = field(default_factory=dict)
    """What a custom train loop left in the current folder when the run was last trained: ``folder``, and the paths of
    ``new`` files and of those that were ``replaced``; 200 of each at most; where ``copies`` are; and the runs that the
    files ``may_be_of``, as they trained at the same time."""

    @property
    def lacks_copy(self) -> bool:
        """Whether there is to be a copy of the run, and something of it is missing."""
        return self.storage is not None and not self.storage["complete"]

    def write(self, run_dir: Path) -> None:
        """Replace ``manifest.json`` in one step."""
        write_atomic(run_dir / MANIFEST, to_json(asdict(self), indent=2) + "\n")


def run_near(path: Path) -> str | None:
    """Return a line about the run that was probably meant by a path that is none; None if there is none near."""
    best = path / "best"  # of a sweep
    if (best / MANIFEST).exists():
        return f"Use its best trial: {best}"
    places = ((path, "*"), (Path("runs") / path.name, "*"), (path.parent, "*"), (Path("runs"), "*/*"))
    for folder, below in places:
        if (newest := newest_run(folder, below)) is not None:
            return f"The newest run in {folder}: {newest}"
    return None


def newest_run(folder: Path, below: str = "*") -> Path | None:
    """Return the run directory in a folder whose manifest was written last; None if there is none.

    Args:
        folder: May be missing.
        below: Pattern of the run directories in it.
    """
    manifests = folder.glob(f"{below}/{MANIFEST}")
    newest = max(manifests, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else newest.parent


def read_manifest(run_dir: Path) -> Manifest:
    """Return the manifest of a run directory. Keys of newer versions are left out; nothing is executed.

    Raises:
        RtrainError: There is no readable manifest.
    """
    path = run_dir / MANIFEST
    try:
        return manifest_of(read_json(run_dir, MANIFEST))
    except RtrainError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        lacks = f"it has no {MANIFEST}" if run_dir.is_dir() else "there is no such folder"
        raise RtrainError(f"{run_dir} is not a run directory: {lacks}.", run_near(run_dir)) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        config = run_dir / CONFIG_NAME
        again = f"Train it again: rtrain fit {quote(str(config))}" if config.is_file() else None
        raise RtrainError(f"{path} can't be read: {what_is_wrong(error)}.", again) from error


def manifest_of(stored: Mapping[str, Any]) -> Manifest:
    """Return what was read of a manifest. Keys of newer versions are left out.

    Raises:
        TypeError: A key is missing, or of another type.
        ValueError: A name leads out of the run directory.
    """
    known = {f.name for f in fields(Manifest)}
    check_kinds(stored)
    check_places(stored)
    _check_texts(stored)
    required = [one.name for one in fields(Manifest) if one.default is MISSING and one.default_factory is MISSING]
    if missing := [name for name in required if name not in stored]:
        raise TypeError(f"it lacks {', '.join(missing)}")
    return Manifest(**{key: value for key, value in stored.items() if key in known})


def what_is_wrong(error: Exception) -> str:
    """Return why a manifest can't be read, for users."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    if isinstance(error, RtrainError):
        return error.message.removesuffix(".")
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def check_kinds(stored: object) -> None:
    """Check that what was read of a manifest is a mapping, and that its fields are of the kinds that they are.

    Raises:
        TypeError: Names a field that is of another kind.
    """
    if not isinstance(stored, dict):
        raise TypeError("it is not a mapping")
    for one in fields(Manifest):
        declared = str(one.type)
        kind, name = _KINDS[re.split(r"\W", declared)[0]]
        value = stored.get(one.name, None if declared.endswith("| None") else kind())
        if not (isinstance(value, kind) or (value is None and declared.endswith("| None"))):
            raise TypeError(f"{one.name} is not {name}")


def check_places(stored: Mapping[str, Any]) -> None:
    """Check the paths, and the entries about the copy: no name in a manifest leads out of its run directory.

    Raises:
        ValueError: One does, or a time is invalid; TypeError, KeyError or AttributeError: Something is missing, or of
            another type.
    """
    for key in ("config", "host"):
        if not isinstance(stored.get(key, {}), Mapping):
            raise TypeError(f"{key} is not a mapping")
    _check_sections(stored.get("config", {}))
    _check_copy(stored.get("storage"))
    best = stored.get("best_checkpoint")
    records = stored.get("checkpoints", [])
    names = [record["name"] for record in records]
    for name in [*names, *([] if best is None else [best.removeprefix("checkpoints/")])]:
        if not is_plain_name(name):
            raise ValueError(f"{name!r} is not the name of a checkpoint")
    if not is_plain_name(stored.get("run_id", "-")):
        raise ValueError(f"run_id {stored['run_id']!r} is not the name of a folder")
    for record in records:
        check_files(record.get("files", {}))
        for key in ("step", "epoch"):
            if not isinstance(record.get(key, 0), int):
                raise TypeError(f"the {key} of the checkpoint {record['name']} is not a whole number")


def _check_sections(config: Mapping[str, Any]) -> None:
    """Check the sections that are read, as far as a config has them: an old one may lack some."""
    if not isinstance(config.get("run", {}), Mapping):
        raise TypeError("config.run is not a mapping")
    for name in SECTIONS:
        section = config.get(name)
        if not isinstance(section, Mapping | None):
            raise TypeError(f"config.{name} is not a mapping")
        if section and name != "datasets" and not isinstance(section.get("type", ""), str):
            raise TypeError(f"config.{name}.type is not text")


def _check_texts(stored: Mapping[str, Any]) -> None:
    for key in ("run_name", "status", "config_hash", "project_root", "started_at"):
        if not isinstance(stored.get(key, ""), str):
            raise TypeError(f"{key} is not text")
    resumes = stored.get("resumes", [])
    if not isinstance(resumes, list) or not all(isinstance(one, Mapping) for one in resumes):
        raise TypeError("resumes is not a list of mappings")
    for command in (stored.get("command", []), *(one.get("command", []) for one in resumes)):
        if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
            raise TypeError("command is not a list of words")


def _check_copy(storage: object) -> None:
    if storage is None:
        return
    if not isinstance(storage, Mapping) or not isinstance(storage.get("complete"), bool):
        raise TypeError("storage does not say whether the copy is complete")
    copied_at = storage.get("copied_at")
    if copied_at is not None and datetime.fromisoformat(copied_at).tzinfo is None:
        raise ValueError(f"storage.copied_at is {copied_at!r}, without a time zone")


def check_files(files: Mapping[str, Any]) -> None:
    """Check the names of the files of a checkpoint.

    Raises:
        ValueError: One leads out of its folder.
    """
    for name in files:
        if not is_plain_name(name, nested=True):
            raise ValueError(f"the file {name!r} is outside its folder")
