"""Resume a run: which one, and whether the current config allows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from shlex import join, quote
from typing import Any, NoReturn

from rtrain.config.composed import Composed
from rtrain.config.files.locations import shown
from rtrain.config.renamed import by_new_names
from rtrain.config.schema import RtrainConf
from rtrain.config.targets.moved import with_names_of_now
from rtrain.datasets import registry as datasets
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, ConfigError, ForbiddenFileError, RtrainError, StrangeFileError
from rtrain.runs.checkpoints import all_checkpoints, latest_checkpoint
from rtrain.runs.filesystem.lock import holder, is_locked
from rtrain.runs.filesystem.plain_files import check_run_dir
from rtrain.runs.manifest import CONFIG_NAME, MANIFEST, Manifest, manifest_of, read_manifest
from rtrain.runs.status import Status
from rtrain.runs.verify import damages
from rtrain.storage.fetching import StoredRun
from rtrain.text.printable import printable
from rtrain.trainers import registry as trainers
from rtrain.trainers.base import BASE, NOT_BASE
from rtrain.trainers.registry import has_own_loop, trainer_of
from rtrain.trainers.trained import refuse_pickles, wrote_files
from rtrain.training.local_copy import bring, catch_up, in_store, is_ahead, is_worked_on

FREE = ("run", "scaling", "cluster", "smoke", "allow", "vars")
"""Sections that may change."""
FIXED = ("run.seed",)
READ_FROM = (
    *("path", "url", "query", "function", "arguments", "name", "version", "subset", "revision", "storage_options"),
    *("x", "y", "delimiter", "decimal", "names", "skipinitialspace", "memory", "max_unseen"),
)
"""Keys of ``dataset`` that may change: where rows are read from, and how, while they are the same rows."""
SAME_DATA = (
    *("memory", "task", "input_shape", "dtype", "num_classes", "class_names", "feature_names", "num_rows"),
    *("categories", "columns", "target_dtype", "mean", "std"),
)
"""What a model and a position in an epoch depend on."""
SCALES = ("mean", "std")
OTHER_ORDER = (
    "streamed rows are shuffled in another order than by the version that started the run: an epoch that is resumed "
    "repeats some of its rows and skips others"
)
ROUNDING = 1e-6
"""Relative difference of two means or deviations of the same rows."""
SCHEDULED_BY = ("trainer.max_epochs", "trainer.max_steps")
"""What says how long a run is, in what schedules count."""
COUNTS = {"trainer.max_epochs": "epoch", "trainer.max_steps": "step", "trainer.num_boost_round": "step"}
"""What the record of a checkpoint counts, by the key that limits it."""


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """A run to resume."""

    run_dir: Path
    manifest: Manifest
    """As the run left it."""
    changed: Mapping[str, tuple[Any, Any]]
    """Values before and now, by key."""
    twin: StoredRun | None = None
    """The run as ``run.storage`` has it, if it does."""
    strange: frozenset[str] = frozenset()
    """Names of its checkpoints whose files another account may have written, if they are not trusted."""

    @property
    def how_to_begin_again(self) -> str:
        """How to start a new run, with the weights of this one if its trainer can: the end of a hint."""
        trainer = self.manifest.config["trainer"]
        if has_own_loop(trainer) or not trainer_of(trainer).can_init:
            return "start a new run."
        return f"start a new run from its weights: run.init_from={self.run_dir}"

    def check_data(self, info: DatasetInfo | None, may_differ: bool = False) -> str | None:
        """Compare the rows; return a notice if they differ and may.

        Args:
            info: The data of now.
            may_differ: The user says that other content is meant.

        Raises:
            ConfigError: The model, or the position in the epoch, belongs to other rows.
        """
        before, now = self.manifest.dataset or {}, {} if info is None else asdict(info)
        same = () if before.get("parts") and now.get("parts") else SAME_DATA  # only the loop knows what depends on them
        for name in (name for name in same if name in before):  # older manifests know less
            was, is_now = _plain(before[name]), _plain(now.get(name))
            if not _alike(was, is_now):
                hint = f"Use the rows of then, or {self.how_to_begin_again}"
                if name == "memory":
                    hint = f"Read it as before: dataset.memory={was}"
                what = f"{name} was {was}, and is {is_now}"
                if name in SCALES:
                    what = f"the {name} of the rows is another one, by which they are scaled"
                raise ConfigError(f"{self.run_dir} can't be resumed with other data: {what}.", hint)
        if before.get("fingerprint") == now.get("fingerprint"):
            same_order = before.get("num_ranges", 0) == now.get("num_ranges", 0)
            return None if same_order else OTHER_ORDER
        what = "files" if before.get("memory") == "stream" else "rows"
        if not may_differ:
            raise ConfigError(
                f"{self.run_dir} can't be resumed: the {what} of {now['name']} have changed since the run started.",
                f"To allow this: run.resume_data=changed. Or {self.how_to_begin_again}",
            )
        return f"the {what} have changed since the run started (run.resume_data=changed)"


def find_resumption(
    composed: Composed,
    wanted: Path | None = None,
    notice: Callable[[str], None] = lambda _: None,
    may_change: Collection[str] = (),
) -> Resumption | None:
    """Return the run to resume, or None for a new one. A run that ``run.storage`` has is fetched.

    Args:
        composed: The current config; its ``run.resume`` decides unless ``wanted`` is given. Its ``run.init_from`` is
                dropped when a run resumes, because that run has its weights.
            wanted: The run to resume.
        notice: Takes a line for the user.
        may_change: Keys that may have other values in ``wanted``, beyond those that its trainer lets change.

    Raises:
        ConfigError: There is no such run, it can't be resumed with this config, or it holds pickles of another account.
    """
    resume = composed.conf.run.resume
    found: Resumption | None
    if wanted is None and resume not in ("never", "auto", "must"):
        wanted = Path(resume)
    if wanted is not None:
        catch_up(wanted, composed.conf.run.storage, notice)
        opened = _open(wanted, composed)
        found = _checked(opened, {*may_change, *_moved(opened)})
    elif resume == "never":
        _check_free(composed.run_dir)
        return None
    else:
        found = _newest_fitting(composed, notice)
    if found is not None:
        composed.conf.run.init_from = None
        if not composed.trust:
            _refuse_pickles(found, composed)
            strange = (one.name for one in all_checkpoints(found.run_dir) if not wrote_files(one))
            found = replace(found, strange=frozenset(strange))
    return found


def _refuse_pickles(found: Resumption, composed: Composed) -> None:
    pickles = trainer_of(composed.resolved["trainer"]).pickles
    try:
        for checkpoint in all_checkpoints(found.run_dir) if pickles else ():
            if not any(damages(checkpoint)):  # nothing resumes from a damaged one
                refuse_pickles(checkpoint, pickles)
    except CheckpointError as error:
        hint = f"If you trust its author: rtrain resume {quote(str(found.run_dir))} --trust"
        raise ConfigError(error.message, hint) from error


def _newest_fitting(composed: Composed, notice: Callable[[str], None]) -> Resumption | None:
    """Return the newest unfinished run of a config, for ``run.resume`` of ``auto`` or ``must``."""
    found = list(_unfinished(composed))
    free = (one for one in found if not is_locked(one.run_dir) and not refused(one))
    fitting = next((one for one in free if not is_worked_on(one.twin, one.run_dir, notice)), None)
    if fitting is None and composed.conf.run.resume == "must":
        raise ConfigError(
            f"run.resume=must is set, but there is no unfinished run of this config in {_home(composed)} to resume."
            + "".join(f"\n{_why_not(one)}" for one in found[:3]),
            "Start a new one: run.resume=never",
        )
    if fitting is not None and fitting.twin is not None:
        bring(fitting.twin, fitting.run_dir, notice)
    return fitting


def _why_not(resumption: Resumption) -> str:
    """Say why an unfinished run isn't resumed: its config differs, or a process works on it."""
    name, keys = resumption.run_dir.name, refused(resumption)
    if keys:
        return f"{name} differs: {', '.join(keys)}"
    working = holder(resumption.run_dir)
    return f"{name} is in use by " + ("another process" if working is None else "process {} on {}".format(*working))


def refused(resumption: Resumption) -> list[str]:
    """Return the changed keys that prevent a run from resuming."""
    trainer = trainer_of(resumption.manifest.config["trainer"])
    wrong = [key for key in resumption.changed if not may_change_anyway(key, trainer.resumable)]
    lengths = [] if _schedule(resumption) is None else [key for key in SCHEDULED_BY if key in resumption.changed]
    return list(dict.fromkeys([*wrong, *lengths, *_passed(resumption)]))


def _passed(resumption: Resumption) -> dict[str, int]:
    """Return the limits of now that the newest checkpoint is beyond, with what it has done."""
    done = {
        key: max((one.get(name, 0) for one in resumption.manifest.checkpoints), default=0)
        for key, name in COUNTS.items()
    }
    limits = {key: resumption.changed[key][1] for key in COUNTS if key in resumption.changed}
    return {key: done[key] for key, limit in limits.items() if isinstance(limit, int) and limit < done[key]}


def _schedule(resumption: Resumption) -> str | None:
    """Return the key of a schedule that is as long as the run, or None."""
    conf = resumption.manifest.config["trainer"]
    return trainer_of(conf).schedule_key(conf)


def may_change_anyway(key: str, resumable: frozenset[str]) -> bool:
    """Return whether any run may resume with another value of a key."""
    section, _, rest = key.partition(".")
    if key in FIXED:
        return False
    if section == "dataset":
        return rest.partition(".")[0] in READ_FROM
    if section == "datasets":
        return rest.partition(".")[2].partition(".")[0] in READ_FROM
    return section in FREE or (section == "trainer" and rest.partition(".")[0] in resumable)


def _moved(resumption: Resumption) -> Iterator[str]:
    """Yield the key of a pretrained model that the checkpoints lack: its weights are compared, wherever they are."""
    newest = latest_checkpoint(resumption.run_dir)
    if newest is not None and trainer_of(resumption.manifest.config["trainer"]).lacks_base(newest):
        yield BASE
        if not any(resumption.changed.get(NOT_BASE, ())):  # an empty one, which the other key takes back
            yield NOT_BASE


def _checked(resumption: Resumption, may_change: Collection[str]) -> Resumption:
    wrong = [key for key in refused(resumption) if key not in may_change]
    passed = _passed(resumption)
    if wrong and set(wrong) <= set(passed):
        _refuse_shorter(resumption, {key: passed[key] for key in wrong})
    if wrong:
        why = "can't be resumed with another config: its checkpoint depends on"
        if set(wrong) <= set(SCHEDULED_BY):
            why = f"can't be made longer or shorter, because {_schedule(resumption)} depends on its length:"
        lines = "\n".join(f"  {key}: {_shown(resumption.changed[key])}" for key in wrong)
        hint = f"Keep the old value, or {resumption.how_to_begin_again}"
        raise ConfigError(f"{resumption.run_dir} {why}\n{lines}", hint)
    return resumption


def _refuse_shorter(resumption: Resumption, passed: Mapping[str, int]) -> NoReturn:
    done = " and ".join(f"{number:,} {COUNTS[key]}s" for key, number in passed.items())
    wanted = [f"{key}={resumption.changed[key][1]}" for key in passed]
    shorter = join(["rtrain", "fit", shown(resumption.run_dir / CONFIG_NAME), *wanted])
    raise ConfigError(
        f"{shown(resumption.run_dir)} has already trained {done}: {' '.join(wanted)} would end it before that.",
        f"To train longer, set a higher limit. To train a shorter run from scratch: {shorter}",
    )


def describe_changes(changed: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Return one line for each change that the user should know of."""
    return [f"{key}: {_shown(values)}" for key, values in changed.items() if key not in ("run.resume", "run.name")]


def _shown(values: tuple[Any, Any]) -> str:
    before, now = values
    return printable(f"{before} -> {now}")  # a note may have several lines


def _home(composed: Composed) -> Path:
    return Path(composed.conf.run.root_dir) / composed.conf.run.name


def _unfinished(composed: Composed) -> Iterator[Resumption]:
    """Yield the unfinished runs below the run's name, newest first."""
    found = {}
    for path in _home(composed).glob(f"[!.]*/{MANIFEST}"):
        try:
            found[path.parent.name] = _open(path.parent, composed)
        except RtrainError:  # an unreadable run can't be resumed
            continue
    for twin in in_store(composed.conf.run):
        run_dir = _home(composed) / twin.run_id
        try:
            stored = _resumption(run_dir, manifest_of(twin.manifest), composed)
        except (TypeError, ValueError, KeyError, RtrainError):  # nor can one there
            continue
        if twin.run_id not in found or is_ahead(twin, run_dir):
            found[twin.run_id] = stored
        found[twin.run_id] = replace(found[twin.run_id], twin=twin)
    ordered = sorted(found.values(), key=lambda one: one.manifest.started_at, reverse=True)
    yield from (one for one in ordered if one.manifest.status != Status.SUCCEEDED)


def _open(run_dir: Path, composed: Composed) -> Resumption:
    try:
        check_run_dir(run_dir)
        manifest = read_manifest(run_dir)
    except (StrangeFileError, ForbiddenFileError):
        raise
    except RtrainError as error:
        hint = "Name a run directory, runs/<name>/<time>-<id>; or auto, must or never."
        raise ConfigError(error.message, hint) from error
    return _resumption(run_dir, manifest, composed)


def _resumption(run_dir: Path, manifest: Manifest, composed: Composed) -> Resumption:
    if "type" not in (manifest.config.get("trainer") or {}):
        again = f"To train it again: rtrain fit {quote(shown(run_dir / CONFIG_NAME))}"
        raise ConfigError(f"{run_dir / MANIFEST} is damaged: config.trainer.type is missing.", again)
    return Resumption(run_dir=run_dir.absolute(), manifest=manifest, changed=changed_keys(manifest, composed))


def changed_keys(manifest: Manifest, composed: Composed) -> dict[str, tuple[Any, Any]]:
    """Return by key what a run was trained with, and what its config says now, where the two differ."""
    found = differences(_by_new_names(manifest.config), _by_new_names(composed.resolved))
    return {key: values for key, values in found if not _is_newer(key, values[1], manifest, composed)}


def _by_new_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded config with its keys and targets under the names that they have now."""
    found = by_new_names(RtrainConf, with_names_of_now(config))
    for section, kinds in (("trainer", trainers.confs()), ("dataset", datasets.confs())):
        keys = found.get(section)
        if keys is not None and keys.get("type") in kinds:  # its package may be gone
            found[section] = by_new_names(kinds[keys["type"]], keys)
    return found


def newer_keys(manifest: Manifest, composed: Composed) -> list[str]:
    """Return the keys of a config that were unknown when a run began, and say now what was done then."""
    absent = _absent(manifest.config, composed.resolved)
    return [key for key, value in absent if _is_newer(key, value, manifest, composed)]


def _absent(before: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys, and their values, that only ``now`` has."""
    for key, value in now.items():
        if key not in before:
            yield f"{where}{key}", value
        elif isinstance(value, Mapping) and isinstance(before[key], Mapping):
            yield from _absent(before[key], value, f"{where}{key}.")


def _is_newer(key: str, value: Any, manifest: Manifest, composed: Composed) -> bool:
    """Return whether a key was unknown when the run began, and says now what was done then: its default."""
    *path, last = key.split(".")
    before: Any = manifest.config
    conf: Any = composed.conf
    for name in path:
        before, conf = before.get(name) if isinstance(before, Mapping) else None, getattr(conf, name, None)
    if not isinstance(before, Mapping) or last in before or not is_dataclass(conf):
        return False
    known = {one.name: one for one in fields(conf)}.get(last)
    if known is None:
        return False
    default = known.default if known.default_factory is MISSING else known.default_factory()
    return bool(_plain(asdict(default) if is_dataclass(default) else default) == _plain(value))  # type: ignore[arg-type]


def _check_free(run_dir: Path) -> None:
    check_run_dir(run_dir)
    if (run_dir / MANIFEST).exists():
        again = f"rtrain resume {quote(str(run_dir))}"
        raise ConfigError(
            f"{run_dir} already contains a run.",
            f"To resume it: {again}. Or remove hydra.run.dir: each run then gets a new folder.",
        )


def differences(before: Any, now: Any, where: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the keys whose values differ, each as deep as it goes."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from differences(before.get(key), now.get(key), f"{where}.{key}" if where else str(key))
    elif _plain(before) != _plain(now):
        yield where, (before, now)


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal, numbers with a fraction up to rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
