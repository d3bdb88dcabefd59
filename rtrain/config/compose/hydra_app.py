"""The one place that drives Hydra: search path, composing, and Hydra's own job life cycle."""

from __future__ import annotations

import gc
import io
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import hydra.version
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.config_repository import IConfigRepository
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.default_element import ResultDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus, env_override, run_job
from hydra.errors import ConfigCompositionException
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf, flag_override, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import without_choice
from rtrain.config.compose.exclusive import let_typed_win
from rtrain.config.compose.hydra_parts import NO_LOGGING, CheckedCallbacks, hydra_config, put_checked
from rtrain.config.compose.nodes import plain, unresolved
from rtrain.config.compose.sources.config_source import RtrainSource, source_uri
from rtrain.config.compose.sources.kept import KeptRepository, merged
from rtrain.config.compose.sources.package_source import use_package_sources
from rtrain.config.compose.sources.part_options import as_part
from rtrain.config.compose.spared import spared_work
from rtrain.config.compose.template import Template
from rtrain.config.files.locations import Primary
from rtrain.config.secrets.masked_config import mask_in_place, masked_config
from rtrain.config.targets.gate import Gate
from rtrain.errors import ConfigError

Task = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the files have to know about the choices of the command line."""

    replaced: tuple[str, ...] = ()
    overriding: tuple[str, ...] = ()


class HydraApp:
    """Hydra, set up for one primary config.

    What Hydra writes to disk or hands to callbacks is masked; only the task sees the true values.
    """

    def __init__(self, primary: Primary, folders: Sequence[tuple[str, Path]], choices: Choices) -> None:
        if hydra.version.getbase() is None:
            hydra.version.setbase("1.3")
        Plugins.instance().register(RtrainSource)
        use_package_sources()
        self.primary = primary
        self.loader = _MaskingLoader(_search_path(primary, folders, choices))
        self._hydra = Hydra(task_name=primary.job_name, config_loader=self.loader)
        GlobalHydra.instance().clear()
        GlobalHydra.instance().initialize(self._hydra)
        self._choices_composed: dict[tuple[str, ...], Template] = {}
        """Configs of trials without their values, by the choices of groups."""

    @property
    def sources(self) -> list[ConfigSource]:
        """The folders and stores that configs come from, first hit wins."""
        return self.loader.get_sources()

    @cached_property
    def parser(self) -> OverridesParser:
        """Reads overrides as Hydra does."""
        return OverridesParser.create(config_loader=self.loader)

    def compose(self, overrides: Sequence[str], mode: RunMode = RunMode.RUN) -> DictConfig:
        """Return the composed config with its node ``hydra``."""
        with collector_paused(), spared_work():
            try:
                cfg = self.loader.load_configuration(self.primary.name, list(overrides), mode)
            except TypeError as error:  # Hydra takes any list for one of names
                if any(map(self._has_no_names, self.parser.parse_overrides(list(overrides)))):
                    raise ConfigCompositionException("Config group override must be a list of names") from error
                raise
        let_typed_win(cfg, overrides)
        return cfg

    def defaults(self, overrides: Sequence[str]) -> list[ResultDefault]:
        """Return the configs that are merged, in order."""
        with spared_work():
            return self.loader.compute_defaults_list(self.primary.name, list(overrides), RunMode.RUN).defaults

    def groups(self) -> Sequence[str]:
        """Return all config groups."""
        return self._hydra.list_all_config_groups()

    def run(self, cfg: DictConfig, gate: Gate, task: Task) -> Any:
        """Run one job: run dir, ``.hydra``, HydraConfig and Hydra's callbacks around ``task``."""
        masked = masked_config(cfg)
        callbacks = CheckedCallbacks(masked, gate)
        callbacks.on_run_start(config=masked, config_name=self.primary.name)
        done = run_job(
            task_function=task,
            config=masked,
            job_dir_key="hydra.run.dir",
            job_subdir_key=None,
            hydra_context=HydraContext(config_loader=self.loader, callbacks=callbacks),
            configure_logging=False,
        )
        callbacks.on_run_end(config=masked, config_name=self.primary.name, job_return=done)
        return _result(done)

    def trial_job(self, cfg: DictConfig, gate: Gate, env: dict[str, str]) -> HydraJob:
        """Return a trial as a job of Hydra's that any process can run; ``cfg`` is taken apart."""
        mask_in_place(cfg)
        hydra = cfg.hydra
        with flag_override(cfg, ["struct", "readonly"], False):
            del cfg["hydra"]
        hydra._set_parent(None)
        # Each process creates the schema classes again, so only plain data can be sent to other processes.
        return HydraJob(plain(cfg, unresolved), hydra, gate, env)

    @contextmanager
    def around_sweep(self, sweep: DictConfig, gate: Gate) -> Iterator[None]:
        """Call Hydra's callbacks before and after a sweep."""
        masked = masked_config(sweep)
        callbacks = CheckedCallbacks(masked, gate)
        callbacks.on_multirun_start(config=masked, config_name=self.primary.name)
        yield
        callbacks.on_multirun_end(config=masked, config_name=self.primary.name)

    def launch(
        self, sweep: DictConfig, gate: Gate, jobs: Sequence[Sequence[str]], task: Task
    ) -> list[BaseException | None]:
        """Have Hydra's launcher run jobs, which it composes again in other processes; return what each failed by.

        Args:
            sweep: The composed config of the sweep as a whole.
            gate: What may be called.
            jobs: The overrides of each job.
            task: What each job does; it can be pickled.
        """
        masked = masked_config(sweep)
        context = HydraContext(config_loader=self.loader, callbacks=CheckedCallbacks(masked, gate))
        put_checked(masked, gate)
        with hydra_config(masked):
            launcher = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=task, config=masked)
            returned = launcher.launch([list(job) for job in jobs], initial_job_idx=0)
        return [one._return_value if one.status == JobStatus.FAILED else None for one in returned]

    def load_job(self, cfg: DictConfig, overrides: Sequence[str]) -> DictConfig:
        """Return the true config of one job of the sweep ``cfg``."""
        return ConfigLoaderImpl.load_sweep_config(self.loader, cfg, list(overrides))

    def load_trial(self, sweep: DictConfig, words: Sequence[str]) -> DictConfig:
        """Return the true config of one trial, as ``load_job`` does; what all trials share is composed once.

        Args:
            sweep: The composed config of the sweep as a whole.
            words: The overrides of the trial.
        """
        words = list(map(without_choice, words))
        parsed = self.parser.parse_overrides(words)
        is_choice = [self._is_choice(one) for one in parsed]
        chosen = tuple(word for word, choice in zip(words, is_choice, strict=True) if choice)
        if chosen not in self._choices_composed:
            self._choices_composed[chosen] = Template(self.load_job(sweep, chosen))
        cfg = self._choices_composed[chosen].copy()
        values = [one for one, choice in zip(parsed, is_choice, strict=True) if not choice]
        ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
        let_typed_win(cfg, words)
        with read_write(cfg.hydra), open_dict(cfg.hydra):
            settings = cfg.hydra.job.config.override_dirname
            cfg.hydra.overrides.task = list(words)
            cfg.hydra.job.override_dirname = get_overrides_dirname(
                parsed, exclude_keys=settings.exclude_keys, item_sep=settings.item_sep, kv_sep=settings.kv_sep
            )
        return cfg

    def _has_no_names(self, override: Override) -> bool:
        """Return whether a group is given a list of something else than names of options."""
        value = override.value()
        is_list = isinstance(value, list) and not all(isinstance(one, str) for one in value)
        return is_list and self._is_choice(override)

    def _is_choice(self, override: Override) -> bool:
        return override.package is not None or any(source.is_group(override.key_or_group) for source in self.sources)

    def info(self, what: str, overrides: Sequence[str]) -> str:
        """Return what Hydra prints for ``--info``."""
        out = io.StringIO()
        with redirect_stdout(out), _root_logger_restored(), self.loader.all_masked():
            self._hydra.show_info(what, self.primary.name, list(overrides))
        return out.getvalue()


@dataclass(frozen=True)
class HydraJob:
    """One job of a sweep, which any process can run."""

    job: Any
    """Plain data, without secrets: Hydra writes them to disk."""
    hydra: DictConfig
    """The node ``hydra``, without secrets, too."""
    gate: Gate
    """What of it may be called."""
    env: dict[str, str]
    """Environment variables that the job sets."""

    def run(self, task: Task) -> Any:
        """Run it: run directory, ``.hydra``, HydraConfig and Hydra's callbacks around ``task``."""
        if hydra.version.getbase() is None:
            hydra.version.setbase("1.3")
        config: Any = OmegaConf.create(self.job)
        config["hydra"] = self.hydra
        loader: Any = None  # only sweepers use it

        def within(cfg: DictConfig) -> Any:
            with env_override(self.env):
                return task(cfg)

        done = run_job(
            task_function=within,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
            hydra_context=HydraContext(config_loader=loader, callbacks=CheckedCallbacks(config, self.gate)),
            configure_logging=False,
        )
        return _result(done)


class _MaskingLoader(ConfigLoaderImpl):
    """Hands launchers configs without secrets, since these write them to disk; loads options for several data sets."""

    _masks_all = False

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.repository = KeptRepository(config_search_path)

    def load_configuration(self, *args: Any, **kwargs: Any) -> DictConfig:
        """Return a composed config, masked if it is to be shown."""
        try:
            cfg = super().load_configuration(*args, **kwargs)
        except (KeyError, AttributeError) as error:
            if isinstance(error, OmegaConfBaseException):
                raise
            raise _unusable(error) from error
        return masked_config(cfg) if self._masks_all else cfg

    def _load_single_config(self, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        return as_part(super()._load_single_config(default, repo), default)

    def _compose_config_from_defaults_list(self, defaults: list[ResultDefault], repo: IConfigRepository) -> DictConfig:
        return merged(defaults, repo, super()._compose_config_from_defaults_list)

    @contextmanager
    def all_masked(self) -> Iterator[None]:
        """Mask every config while the block runs."""
        self._masks_all = True
        try:
            yield
        finally:
            self._masks_all = False

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return the masked config of one job, whose logging is left to ``CheckedCallbacks``."""
        masked = masked_config(super().load_sweep_config(master_config, sweep_overrides))
        with flag_override(masked.hydra, ["readonly", "struct"], False):
            masked.hydra.job_logging = NO_LOGGING
        return masked


def sanitized(cfg: DictConfig, what: str) -> DictConfig:
    """Return the part of ``cfg`` that Hydra's ``--cfg job|hydra|all`` shows; ``cfg`` itself changes."""
    OmegaConf.set_readonly(cfg.hydra, None)
    hydra_of_config: Hydra = GlobalHydra.instance().hydra  # type: ignore[assignment]
    return hydra_of_config.get_sanitized_cfg(cfg, what)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: composing makes many small objects that all live on, which it scans in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _unusable(error: Exception) -> ConfigError:
    """Return the error for a ``hydra`` section that Hydra can't read."""
    if isinstance(error, KeyError):
        return ConfigError(
            f"hydra.job.env_copy: the environment variable {error} is not set.", "Set it, or remove hydra.job.env_copy."
        )
    return ConfigError(f"hydra: Hydra can't use this section: {error}.", "Remove its keys that are null.")


def _result(done: JobReturn) -> Any:
    if done.status == JobStatus.FAILED:
        raise done._return_value
    return done.return_value


def _search_path(primary: Primary, folders: Sequence[tuple[str, Path]], choices: Choices) -> ConfigSearchPath:
    main = source_uri(primary.folder, primary.name, choices.replaced, choices.overriding)
    path = create_config_search_path(main)
    replaced = choices.replaced
    for provider, folder in folders:
        anchor = SearchPathQuery(provider="schema")
        if provider != "main":
            path.prepend(provider=provider, path=source_uri(folder, replaced=replaced), anchor=anchor)
    return path


@contextmanager
def _root_logger_restored() -> Iterator[None]:
    """Undo what Hydra's ``--info`` does to the root logger."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:], root.level = before, level
