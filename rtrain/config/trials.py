"""The trials of one command line. Their shared part is composed once, each trial when it is needed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from rtrain.config.compose.aliases import quoted, split_word
from rtrain.config.compose.hydra_app import HydraJob, collector_paused
from rtrain.config.compose.nodes import words_of
from rtrain.config.compose.request import Request
from rtrain.config.compose.search_space import (
    Axis,
    Space,
    expanded_key,
    is_excluded,
    read_space,
    with_params,
    with_zip,
)
from rtrain.config.compose.sources.store import BASE
from rtrain.config.compose.spared import spared_work
from rtrain.config.composed import Composed
from rtrain.config.diagnostics.diagnostic import command_with
from rtrain.config.diagnostics.screen import CliWord, render
from rtrain.config.did_you_mean import to_try, use_instead
from rtrain.config.run_place import check_unused
from rtrain.config.secrets.masked import mask_word
from rtrain.config.secrets.masked_config import masked_config
from rtrain.config.secrets.referred import mask_words, referred_by_secrets
from rtrain.config.secrets.urls import MASK
from rtrain.config.sweep_conf import SweepConf
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.signature import with_signature

NOT_IDENTITY = (
    *("sweep.num_trials", "sweep.max_", "sweep.name", "cluster."),
    *("run.failure.", "run.checkpoint.", "run.resume_data"),
)
"""Overrides that may differ when the same sweep is resumed."""
SHARED = ("sweep", "hydra", "cluster")
"""Sections that all trials have in common."""
_RANGE = re.compile(r"\[?(-?[\d.]*\d(?:e-?\d+)?) ?(?:\.\.+|:|-|to|~) ?(-?\d[\d.]*(?:e-?\d+)?)\]?")
"""Two numbers with what other tools have between the ends of a range."""
COMMAND_NAME = "command.yaml"
Finish = Callable[[DictConfig, Sequence[str], int], Composed]


@dataclass(frozen=True, kw_only=True)
class PauseAt:
    """Where a trial ends for now, with a checkpoint."""

    unit: str
    """``epochs`` or ``steps``."""
    length: int
    metric: str
    """What the report that ends it holds."""
    reason: str
    """What its manifest says."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One trial, composed and checked."""

    composed: Composed
    job: HydraJob
    point: tuple[str, ...]
    """What it tries."""
    may_change: frozenset[str] = frozenset()
    """Keys of the config that may have had other values when its run was begun."""
    pause: PauseAt | None = None
    tried: bool = False
    """Its model has been built and run for a few rows, by the process that plans the sweep."""


class Trials:
    """What a command line with ``--multirun`` asks for.

    Args:
        request: The command line.
        finish: Resolves and checks one composed trial.
        default: Makes the section ``sweep`` of configs without one.
        folder: Folder of the sweep to resume; None: as in the command.
        explained: Turns errors of composing within its block into ConfigError.
    """

    def __init__(
        self,
        request: Request,
        finish: Finish,
        default: Callable[[], SweepConf],
        folder: Path | None,
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._request, self._finish, self._explained = request, finish, explained
        self._sweep, cfg = request.compose_multirun()
        _refuse_foreign(self._sweep)
        self._referred = referred_by_secrets(cfg)
        self.probe = probe = finish(cfg, words_of(cfg.hydra.overrides.task), 0)
        self.conf: SweepConf = probe.conf.sweep or default()
        self.space = self._whole_space()
        typed = cfg.hydra.sweep._get_node("dir")._value() != BASE["hydra"]["sweep"]["dir"]
        own = probe.run_dir.parent if typed else self._own_folder(probe)
        if folder is None and "hydra.sweep.dir" not in probe.gate.typed:
            check_unused("hydra.sweep.dir" if typed else "sweep.name", own)
        self.folder = folder or own
        self._gate = replace(probe.gate, folder=self.folder)
        _set_place(self._sweep, dir=str(self.folder))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is varied."""
        return self.space.axes

    @property
    def command(self) -> list[str]:
        """The command as the user typed it, secrets masked."""
        return mask_words(self._request.command, self._referred)

    def words(self, point: Sequence[str]) -> list[str]:
        """Return what is particular to the trial at a point: its overrides."""
        return [word for axis, value in zip(self.axes, point, strict=True) for word in axis.words(value)]

    def name(self, number: int, point: Sequence[str]) -> str:
        """Return the name of a trial's folder: its number, and a hash of its overrides."""
        return f"{number:03d}-{self.key(point)}"

    def key(self, point: Sequence[str]) -> str:
        """Return a hash of the overrides of the trial at a point."""
        return _hash(sorted(self.words(point)))[:8]

    def plan(self, number: int, point: Sequence[str], name: str | None = None) -> Plan | None:
        """Compose and check a trial; None if ``sweep.exclude`` leaves it out.

        Args:
            number: Of the trial.
            point: What it tries.
            name: Of its folder, if that was begun with other values; None: a new one.

        Raises:
            ConfigError: Something is wrong with it.
        """
        words = [*self.space.fixed, *self.words(point)]
        with collector_paused(), spared_work(), self._explained():
            cfg = self._load(words, name or self.name(number, point))
            composed = self._finish(cfg, words, number)
            if is_excluded(composed.resolved, self.conf.exclude):
                return None
            return Plan(
                composed=composed, job=self._request.app.trial_job(cfg, composed.gate, composed.env), point=tuple(point)
            )

    def save(self) -> None:
        """Write ``multirun.yaml`` as Hydra's sweepers do, and the command in ``command.yaml``; secrets masked."""
        masked = masked_config(self._sweep)
        write_atomic(self.folder / "multirun.yaml", OmegaConf.to_yaml(masked))
        config, config_dir = self.source
        command = {
            "config": None if self._request.primary.given else config,
            "config_dir": config_dir,
            "project_root": str(self.probe.project_root),
            "overrides": mask_words(self._request.overrides, self._referred),
        }
        text = yaml.safe_dump(command, sort_keys=False, allow_unicode=True)
        write_atomic(self.folder / COMMAND_NAME, with_signature(text, ""))

    @property
    def launcher(self) -> str | None:
        """The class of Hydra's launcher that is to run the trials; None: rtrain's own hosts do."""
        target = str(OmegaConf.select(self._sweep, "hydra.launcher._target_"))
        return None if target.startswith("hydra._internal.core_plugins.basic_") else target

    @property
    def source(self) -> tuple[str, str | None]:
        """The config as any process finds it, and the folder of ``--config-dir``."""
        primary = self._request.primary
        return (primary.name if primary.builtin else str(primary.path)), self._request.config_dir

    def typed_secrets(self) -> list[str]:
        """Return the keys of overrides whose values are secrets."""
        return [split_word(word)[1] for word in self._request.overrides if mask_words([word], self._referred) != [word]]

    def launch(self, plans: Sequence[Plan], task: Callable[[Any], Any]) -> list[BaseException | None]:
        """Have Hydra's launcher run trials, and return what each failed by.

        Args:
            plans: The trials.
            task: What to do with each; it can be pickled.
        """
        place = f"hydra.sweep.dir={quoted(str(self.folder))}"
        spelled = [self._request.spelled([*self.space.fixed, *self.words(plan.point)]) for plan in plans]
        jobs = [
            [*words, place, f"hydra.sweep.subdir={plan.composed.run_dir.name}"]
            for words, plan in zip(spelled, plans, strict=True)
        ]
        return self._request.app.launch(self._sweep, self._gate, jobs, task)

    def around(self) -> AbstractContextManager[None]:
        """Call Hydra's callbacks before and after the block."""
        return self._request.app.around_sweep(self._sweep, self._gate)

    def _load(self, words: Sequence[str], name: str) -> DictConfig:
        cfg = self._request.load_trial(self._sweep, words)
        _set_place(cfg, dir=str(self.folder), subdir=name)
        return cfg

    def _whole_space(self) -> Space:
        """Return the space with what the config varies."""
        loader, conf = self._request.app.loader, self.conf
        space = read_space(loader, words_of(self._sweep.hydra.overrides.task), conf.seed)
        hydras = OmegaConf.select(self._sweep, "hydra.sweeper.params") or {}
        params = {str(key): value for key, value in hydras.items()}
        for path, value in _leaves(conf.params):  # dots of a command line make mappings
            params[".".join(path)] = value
            self._request.swept[expanded_key(".".join(path))] = ("sweep", "params", *path)
        for where, part in (("hydra.sweeper.params", hydras), ("sweep.zip", conf.zip)):
            self._request.swept |= {expanded_key(str(key)): (*where.split("."), str(key)) for key in part}
        space = with_zip(with_params(space, loader, params, conf.seed), conf.zip)
        keys = [split_word(word)[1] for axis in space.axes for word in axis.words(axis.first)]
        shared = [key for key in keys if key.split(".")[0].split("/")[0] in SHARED or key == "run.root_dir"]
        if shared:
            raise ConfigError(f"{shared[0]} is the same for all trials: it can't be varied.")
        secret = [split_word(word)[1] for word in _all_words(space) if self._is_secret(word)]
        if secret:
            raise ConfigError(f"{secret[0]} is a secret: it can't be varied, since varied values are recorded.")
        if not space.axes:
            raise _nothing_varied(self._request, list(params))
        return space

    def _is_secret(self, word: str) -> bool:
        """Tell whether an override gives a secret, or what one refers to, or a mapping with one."""
        masked = f"'{MASK}'"
        return masked in mask_words([word], self._referred)[0] and masked not in word

    def _own_folder(self, probe: Composed) -> Path:
        """Return the folder of the sweep: the same for the same command, whatever values are added later."""
        run = probe.conf.run
        return Path(run.root_dir).absolute() / (self.conf.name or f"{run.name}-sweep-{self._identity()}")

    def _identity(self) -> str:
        lasting = [word for word in self.space.fixed if not split_word(word)[1].startswith(NOT_IDENTITY)]
        kind = {"type": type(self.conf).__module__, "scheduler": str(self.conf.scheduler)}
        goal = [self.conf.metric, self.conf.mode, self.conf.seed]
        return _hash([sorted(lasting), sorted(axis.name for axis in self.axes), kind, goal])[:6]


def _leaves(params: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path of each key that is varied, below those of the mappings that it stands in, and its value."""
    for key, value in params.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def _all_words(space: Space) -> Iterator[str]:
    return (word for axis in space.axes for value in axis.values or [axis.first] for word in axis.words(value))


def _set_place(cfg: DictConfig, **places: str) -> None:
    """Tell Hydra where the sweep, or a trial, lies."""
    with read_write(cfg.hydra), open_dict(cfg.hydra):
        cfg.hydra.sweep.update(places)


def _refuse_foreign(sweep: DictConfig) -> None:
    """Check that nothing asks Hydra to sweep, or to name trials, in a way that rtrain would not follow."""
    sweeper = str(OmegaConf.select(sweep, "hydra.sweeper._target_"))
    if not sweeper.startswith("hydra._internal.core_plugins.basic_"):
        raise ConfigError(
            f"hydra/sweeper: rtrain has its own searches and does not use {sweeper}.",
            use_instead("sweep=random, sweep=optuna or similar"),
        )
    if sweep.hydra.sweep._get_node("subdir")._value() != BASE["hydra"]["sweep"]["subdir"]:
        raise ConfigError(
            "hydra.sweep.subdir: trial folders are named after their number and parameters.",
            "Set the folder of the sweep instead: sweep.name=NAME, or hydra.sweep.dir=FOLDER",
        )


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()


def _nothing_varied(request: Request, replaced: Sequence[str]) -> ConfigError:
    """Return the error about a sweep of one trial; a word that has a range in another form is named.

    Args:
        request: The command.
        replaced: Keys that the config varies, and the command sets to one value each.
    """
    message = "nothing is varied" if request.call else "with --multirun, at least one key must be varied"
    if replaced:
        message = f"{message}: sweep.params varies {' and '.join(replaced)}, but the command sets a single value"
        return ConfigError(
            f"{message}.", "Leave it out, or give the key several values: they replace those of sweep.params."
        )
    for word in request.overrides:
        key, _, value = word.partition("=")
        found = _RANGE.fullmatch(value)
        if found is not None:
            low, high = sorted(found.groups(), key=float)
            typed = [mask_word(one) for one in request.command]
            place = CliWord(typed, request.command.index(word), request.call)
            hint = f"  or search between them: '{key}=interval({low},{high})' sweep=random"
            attempt = command_with(place, f"{key}={found[1]},{found[2]}")
            return ConfigError(render(f"{message}: '{value}' is a single value", place), "  " + to_try(attempt, hint))
    example = 'seed=rtrain.choice(1, 2) or "seed=1,2"; a list is one value' if request.call else "seed=1,2"
    return ConfigError(
        f"{message}.", f"Give a key several values, e.g. {example}, or write sweep.params in the config."
    )
