"""Compose, check and run what one command line asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import env_override
from omegaconf import DictConfig

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.compose.bounds import bounded_references
from rtrain.config.compose.hydra_parts import check_hydra, hydra_config
from rtrain.config.compose.request import prepare
from rtrain.config.compose.resolve import place_job, put_job, recorded, resolve, secrets_of, shown_config
from rtrain.config.compose.resolvers import named_variables, register_resolvers
from rtrain.config.compose.sources.store import DEFAULT_PLUGINS, open_keys, store_schemas, users_keys
from rtrain.config.composed import Composed
from rtrain.config.diagnostics.hydra_settings import refuse_unused_settings
from rtrain.config.diagnostics.idle import check_idle
from rtrain.config.diagnostics.two_choices import refuse_two_choices
from rtrain.config.diagnostics.unread_vars import unread_vars
from rtrain.config.files.locations import Primary, find_project_root
from rtrain.config.needs import Way
from rtrain.config.renamed import check_renamed
from rtrain.config.run_place import check_not_masked, check_place
from rtrain.config.schema import Schemas
from rtrain.config.secrets.referred import mask_words, referred_by_secrets
from rtrain.config.secrets.urls import without_secrets
from rtrain.config.targets.allow_list import allowed_by_project, use_project_root
from rtrain.config.targets.forgetting import keep_imported
from rtrain.config.targets.gate import Gate, leaves
from rtrain.config.targets.moved import with_names_of_now
from rtrain.errors import ConfigError, RtrainError, TargetError
from rtrain.runs.filesystem.files import MANIFEST
from rtrain.runs.filesystem.plain_files import check_run_dir
from rtrain.runs.manifest import read_manifest
from rtrain.runs.signature import is_signed_by_this_account

if TYPE_CHECKING:
    from rtrain.config.calls.call import Call
    from rtrain.config.trials import Trials

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
CHECK = ("rtrain", "check")
"""How a command begins that looks for its config as ``rtrain fit`` does."""


class Session:
    """One command line. Nothing is written before ``run``; Hydra's globals are cleared around it."""

    trust = False
    """``Composed.trust``, of all its jobs."""

    needs_secrets = True
    """Whether a secret that is masked in the config is an error: to predict, none is needed."""

    verb = "fit"
    """The command, if it decides which run is trained: ``resume`` and ``runs reproduce`` name one."""

    is_tried = False
    """Another session only asks what is wrong."""

    resumes_sweep = False
    """The user named the folder of a sweep, which may lie outside of ``run.root_dir``: the sweep stays there."""

    def __init__(
        self,
        config: str | Primary,
        overrides: Sequence[str],
        schemas: Schemas,
        config_dir: str | None = None,
        project_root: Path | None = None,
        typed: tuple[str, ...] = (),
        call: Call | None = None,
    ) -> None:
        """Remember what is asked for.

        Args:
            config: Path or name of the primary config, or itself.
            overrides: The user's words.
            schemas: The conf dataclasses of all plugins.
            config_dir: One more folder to look config groups up in.
            project_root: Folder whose modules the config may name; None: the project that holds the config.
            typed: What the user typed before the overrides, where it is not ``rtrain fit CONFIG``.
            call: The call from Python that asks for it; None: a command does.
        """
        self._config, self._overrides, self._config_dir = config, tuple(overrides), config_dir
        self._schemas, self._project_root, self._typed, self._call = schemas, project_root, typed, call
        self._checked: tuple[DictConfig, Composed] | None = None
        self._composed: DictConfig | None = None
        self._answers: dict[tuple[str, ...], Exception | None] = {}
        """What was wrong with other overrides, which one error asks for again and again."""

    def __enter__(self) -> Self:
        """Find the config and set Hydra up.

        Raises:
            ConfigError: There is no such config.
        """
        if not self.is_tried:
            keep_imported()
        GlobalHydra.instance().clear()
        store_schemas(self._schemas)
        opened, of_users = partial(open_keys, self._schemas), partial(users_keys, self._schemas)
        try:
            self.request = prepare(self._config, self._overrides, self._config_dir, opened, of_users)
        except ConfigError as error:
            if self._typed[:2] == CHECK:
                error.hint = error.hint and error.hint.replace("rtrain fit ", f"{' '.join(CHECK)} ")
            raise
        self.request.typed, self.request.call = self._typed, self._call
        primary = self.request.primary
        register_resolvers(Path.cwd() if primary.given else primary.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Clear Hydra's globals. An error that leaves the block and names a key gets the place that set it.

        Raises:
            ConfigError: Stands for a target that can't be built.
        """
        try:
            if not self.is_tried and isinstance(error, TargetError):
                raise self._shown(self._placed(error)) from error
            if not self.is_tried and isinstance(error, ConfigError):
                self._add_place(error)
        finally:
            GlobalHydra.instance().clear()

    def check(self) -> Composed:
        """Compose and check the config; nothing is written.

        Raises:
            ConfigError: Something is wrong with it.
        """
        if self._checked is None:
            with self._explained():
                cfg = self.request.compose()
                self._checked = cfg, self._finish(cfg, self.request.texts)
        return self._checked[1]

    def environment(self) -> AbstractContextManager[None]:
        """Set the environment variables of the job while the block runs."""
        variables: AbstractContextManager[None] = env_override(self.check().env)
        return variables

    def run(self, task: Callable[[Composed, Path], T], run_dir: Path | None = None) -> T:
        """Run ``task`` as a Hydra job: it gets the config and its run directory. Its exceptions pass unchanged.

        Args:
            task: What to do.
            run_dir: The run directory to resume; None: the one in the config.
        """
        composed = self.check()
        assert self._checked is not None
        cfg = self._checked[0]
        if run_dir is not None:
            put_job(cfg, run_dir)
        gate = replace(composed.gate, folder=(run_dir or composed.run_dir).absolute())
        check_run_dir(gate.folder)

        def job(_: DictConfig) -> T:
            with self.environment():
                return task(composed, Path(HydraConfig.get().runtime.output_dir))

        result: T = self.request.app.run(cfg, gate, job)
        return result

    def trials(self, folder: Path | None = None) -> Trials:
        """Return the requested trials. Nothing is written.

        Args:
            folder: Folder of the sweep to resume; None: as in the command.

        Raises:
            ConfigError: Something that all trials share is wrong.
        """
        from rtrain.config.trials import Trials

        self.resumes_sweep = folder is not None
        self.request.typed = self.request.typed or ("rtrain", "fit", self.request.config, "--multirun")
        default = self._schemas.sweep[DEFAULT_PLUGINS["sweep"]]
        with self._explained():
            return Trials(self.request, self._finish, default, folder, self._explained)

    def show_cfg(self, what: str, package: str | None = None, resolve: bool = False) -> str:
        """Return the composed config as Hydra's ``--cfg job|hydra|all`` prints it, secrets masked.

        Raises:
            ConfigError: It can't be composed, or has no part ``package``.
        """
        with self._explained():
            cfg = self.request.compose()
            if what != "job" or resolve:
                place_job(cfg)
            return shown_config(cfg, what, package, resolve)

    def show_info(self, what: str) -> str:
        """Return what Hydra's ``--info`` prints: all, config, defaults, defaults-tree, plugins or searchpath.

        Raises:
            ConfigError: The config can't be composed.
        """
        with self._explained():
            redact = secrets_of(self.request.compose())
            return redact(without_secrets(self.request.app.info(what, self.request.texts)))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of composing and checking into ConfigError; what explains them is imported when needed."""
        with named_variables() as named:
            try:
                if not self.request.of_file:
                    refuse_two_choices(self.request)
                with bounded_references():
                    yield
            except TargetError as error:
                raise self._shown(named(self._placed(error))) from error
            except RtrainError as error:
                self._shown(named(error))
                raise
            except Exception as error:
                from rtrain.config.diagnostics.explain import explain

                explained = explain(self.request, self._schemas, error, self._what_is_wrong_with)
                if explained is error:
                    raise
                raise self._shown(named(explained)) from error

    def _add_place(self, error: ConfigError) -> None:
        from rtrain.config.diagnostics.explain import show_place

        show_place(self.request, self._schemas, error, self._what_is_wrong_with)
        self._shown(error)

    def _placed(self, error: TargetError) -> ConfigError:
        from rtrain.config.diagnostics.target_errors import place_target

        return place_target(self.request, self._schemas, error, self._what_is_wrong_with)

    def _what_is_wrong_with(self, overrides: Sequence[str]) -> Exception | None:
        """Return why the config can't be composed or checked with other overrides; None if it can."""
        key = tuple(overrides)
        if key not in self._answers:
            self._answers[key] = self._what_is_found_with(overrides)
        return self._answers[key]

    def _what_is_found_with(self, overrides: Sequence[str]) -> Exception | None:
        typed = self.request.typed
        if "--multirun" not in typed and any(word.startswith("sweep") for word in overrides):
            typed = (
                *(typed or ("rtrain", "fit", self.request.config)),
                "--multirun",
            )  # what follows has no effect without it
        other = Session(self._config, overrides, self._schemas, self._config_dir, self._project_root, typed)
        other.trust, other.needs_secrets, other.verb, other.is_tried = self.trust, self.needs_secrets, self.verb, True
        try:
            with other:
                if "--multirun" in typed:
                    _, cfg = other.request.compose_multirun()
                else:
                    cfg = other.request.compose()
                other._finish(cfg, other.request.texts)
        except Exception as error:
            return error
        return None

    def _shown(self, error: E) -> E:
        """Make the commands of a hint whole, and mask the secrets of what was composed last."""
        if isinstance(error, RtrainError) and error.hint:
            from rtrain.config.diagnostics.meant.whole_commands import with_whole_commands

            error.hint = with_whole_commands(error.hint, self.request, self._what_is_wrong_with)
        if self._composed is not None and isinstance(error, RtrainError):
            try:
                with bounded_references():
                    redact = secrets_of(self._composed).for_targets
            except RtrainError:  # what is unbounded is what the error is about
                return error
            error.message, error.hint = redact(error.message), error.hint and redact(error.hint)
            error.args = (error.message, *error.args[1:])
        return error

    @cached_property
    def _project(self) -> tuple[Path, tuple[str, ...]]:
        """The project's folder and what it allows: looked up once for all trials."""
        root = self._project_root or self._project_of_run() or find_project_root(self.request.primary)
        return root, allowed_by_project(root)

    def _project_of_run(self) -> Path | None:
        """Return the project of the run that wrote the config, if this account made it and it was not changed."""
        primary = self.request.primary
        if not _is_of_run(primary):
            return None
        try:
            root = read_manifest(primary.path.parent).project_root
        except RtrainError:  # a damaged one says nothing of it
            return None
        return Path(root) if root and Path(root).is_dir() and self._is_own_run(Path(root)) else None

    def _builds_foreign(self, trainer: Any) -> bool:
        """Return whether a part of the trainer names a class of a framework that it can't use."""
        parts = [trainer.get(name) for name in GROUPS] if isinstance(trainer, Mapping) else []
        targets = [one.get("_target_") for one in parts if isinstance(one, Mapping)]
        return any(self._schemas.is_foreign(trainer.get("type"), target) for target in targets)

    def _finish(self, cfg: DictConfig, words: Sequence[str], num: int | None = None) -> Composed:
        """Resolve and check one composed job."""
        from rtrain.config.validate import validate

        primary, self._composed = self.request.primary, cfg
        resumed = _is_of_run(primary)
        place_job(cfg, num)
        with hydra_config(cfg):
            data = with_names_of_now(resolve(cfg))
            if self.needs_secrets:
                check_not_masked(data, of_run=resumed)
            root, allowed = self._project
            allow = (*data["allow"], *allowed, *self._schemas.modules(data["trainer"]))
            gate = self._gate(cfg, data, allow, root, of_sweep=num is not None)
            gate.check_job(data)
            env = check_hydra(cfg, gate)
            if self._builds_foreign(data["trainer"]):
                from rtrain.config.diagnostics.meant.other_options import refuse_foreign_options

                refuse_foreign_options(self.request, self._schemas, data["trainer"], self._what_is_wrong_with)
            conf = validate(data, self._schemas)
            renamed = check_renamed(data, conf, words)
            multirun = num is not None or "--multirun" in self.request.typed
            refuse_unused_settings(self.request, multirun=multirun)
            way = Way(conf, multirun=multirun, smoke=self.request.of_file, resumed=resumed, verb=self.verb)
            of_run = resumed or not self.needs_secrets
            idle = check_idle(self.request, way, words, of_run=of_run)
            record = recorded(cfg, data, env)
            typed = gate.typed | ({"hydra.sweep.dir"} if self.resumes_sweep else set())
            check_place(cfg, conf.run.root_dir, record.resolved["run"], typed, of_sweep=num is not None)
        use_project_root(root)
        return Composed(
            conf=conf,
            of_run=of_run,
            given=primary.given,
            resolved=record.resolved,
            yaml=record.yaml,
            config_name=primary.name,
            config_path=None if primary.builtin or primary.given else primary.path,
            run_dir=Path(cfg.hydra.runtime.output_dir),
            overrides=tuple(mask_words(words, referred_by_secrets(cfg))),
            project_root=root,
            allow=allow,
            config_dir=self.request.config_dir,
            trust=self.trust,
            sweep=None if num is None else Path(cfg.hydra.runtime.output_dir).parent.name,
            redact=record.redact,
            gate=gate,
            env=env,
            notices=(*idle.notes, *unread_vars(self.request, cfg), *(() if of_run else renamed)),
            awaiting=idle.awaiting,
            typed=idle.typed,
        )

    def _gate(
        self, cfg: DictConfig, data: dict[str, Any], allow: tuple[str, ...], root: Path, *, of_sweep: bool
    ) -> Gate:
        typed = self.request.set_keys
        if self.trust or self._is_own_run(root):  # what was typed when it was begun
            typed |= {f"cluster.runtime_env.{name}" for name in data["cluster"]["runtime_env"]}
            sections = ("cluster", "run", "dataset", "datasets")
            typed |= {leaf for section in sections for leaf in leaves(section, data[section])}
        place = Path(cfg.hydra.runtime.output_dir)
        return Gate(allow=allow, root=root, folder=place.parent if of_sweep else place, typed=frozenset(typed))

    def _is_own_run(self, root: Path) -> bool:
        """Tell whether the config is the ``config.yaml`` of a run of this account's."""
        primary = self.request.primary
        return not primary.builtin and is_signed_by_this_account(primary.path.read_text(encoding="utf-8"), str(root))


def job_place() -> tuple[list[str], Path]:
    """Return the overrides and the folder of the job of Hydra's that this process runs."""
    hydra = HydraConfig.get()
    return list(hydra.overrides.task), Path(hydra.runtime.output_dir)


def _is_of_run(primary: Primary) -> bool:
    """Tell whether a config is the ``config.yaml`` that a run wrote."""
    return not primary.builtin and (primary.path.parent / MANIFEST).exists()
