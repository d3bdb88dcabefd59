"""What Hydra makes of the node ``hydra``: callbacks, logging, launchers. All of it passes the gate first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import configure_log
from hydra.types import TaskFunction
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, flag_override

from rtrain.config.compose.nodes import Container
from rtrain.config.targets.gate import Gate
from rtrain.errors import ConfigError

NO_LOGGING = {"version": 1, "root": None, "disable_existing_loggers": False}
"""The root logger is left alone."""


@contextmanager
def hydra_config(cfg: DictConfig) -> Iterator[None]:
    """Let ``${hydra:...}`` resolve against ``cfg`` while the block runs; it may do so already."""
    instance = HydraConfig.instance()
    before: Any = instance.cfg
    if before is not None and before._get_node("hydra") is cfg._get_node("hydra"):
        yield
        return
    # As HydraConfig.set_config does, but that copies the node, which is as large as all others together.
    OmegaConf.set_readonly(cfg.hydra, True)
    hidden: Any = DictConfig({"hydra": cfg.hydra}, flags={"no_deepcopy_set_nodes": True})
    cfg.hydra._set_parent(cfg)
    instance.cfg = hidden
    try:
        yield
    finally:
        instance.cfg = before


def settled(cfg: DictConfig, key: str) -> Any:
    """Return a part of ``cfg`` as plain data, resolved once and for all."""
    with hydra_config(cfg):
        node = OmegaConf.select(cfg, key)
        return OmegaConf.to_container(node, resolve=True) if isinstance(node, Container) else node


def check_hydra(cfg: DictConfig, gate: Gate) -> dict[str, str]:
    """Check what Hydra will use of ``cfg``; nothing is imported. Return the environment variables that the job sets.

    Raises:
        TargetError: Something of it is not allowed.
    """
    gate.check_callbacks(settled(cfg, "hydra.callbacks"))
    for section in ("hydra.job_logging", "hydra.hydra_logging"):
        gate.check_logging(settled(cfg, section), section)
    for plugin in ("hydra.launcher", "hydra.sweeper"):
        gate.check_plugin(settled(cfg, plugin), plugin, _sweep_dir(cfg))
    _verbose(cfg)
    env = settled(cfg, "hydra.job.env_set")
    gate.check_variables(env, "hydra.job.env_set")
    return {str(name): str(value) for name, value in env.items()}


def put_checked(cfg: DictConfig, gate: Gate) -> None:
    """Put what a launcher takes from ``cfg``, checked and without references, in place of what was composed."""
    launcher, logging = settled(cfg, "hydra.launcher"), settled(cfg, "hydra.hydra_logging")
    gate.check_plugin(launcher, "hydra.launcher", _sweep_dir(cfg))
    gate.check_logging(logging, "hydra.hydra_logging", walk=True)
    with flag_override(cfg.hydra, ["readonly", "struct"], False):
        cfg.hydra.launcher, cfg.hydra.hydra_logging = _literal(launcher), _literal(logging)


def _sweep_dir(cfg: DictConfig) -> Path:
    return Path(str(settled(cfg, "hydra.sweep.dir"))).absolute()


class CheckedCallbacks(Callbacks):
    """Hydra's callbacks, and the logging of each job, which is set up when it starts.

    Args:
        cfg: A composed config. Its ``hydra.hydra_logging`` is set up, and its callbacks are made.
        gate: What they may be.
    """

    def __init__(self, cfg: DictConfig, gate: Gate) -> None:
        super().__init__(None)
        self._gate, self._job_logging = gate, _unresolved(cfg.hydra.job_logging)
        self._configure(cfg, "hydra.hydra_logging")
        nodes = settled(cfg, "hydra.callbacks")
        gate.check_callbacks(nodes)
        self.callbacks = [instantiate(_literal(node)) for node in gate.located(nodes).values() if node]

    def on_job_start(self, config: DictConfig, *, task_function: TaskFunction, **kwargs: Any) -> None:
        """Set up the job's logging, and call the callbacks."""
        with flag_override(config.hydra, ["readonly", "struct"], False):
            config.hydra.job_logging = self._job_logging
        self._configure(config, "hydra.job_logging")
        super().on_job_start(config, task_function=task_function, **kwargs)

    def _configure(self, cfg: DictConfig, section: str) -> None:
        data = settled(cfg, section)
        self._gate.check_logging(data, section, walk=True)
        section_node: Any = None if data is None else OmegaConf.create(_literal(data))
        configure_log(section_node, _verbose(cfg))


def _verbose(cfg: DictConfig) -> Any:
    """Return ``hydra.verbose`` as Hydra takes it.

    Raises:
        ConfigError: It names no loggers.
    """
    value = settled(cfg, "hydra.verbose")
    names = value if isinstance(value, list) else [value]
    if not isinstance(value, bool) and not all(isinstance(name, str) for name in names):
        raise ConfigError("hydra.verbose: must be true, false, the name of a logger or a list of names.")
    return OmegaConf.create(value) if isinstance(value, list) else value


def _unresolved(node: Any) -> Any:
    return OmegaConf.to_container(node, resolve=False) if isinstance(node, Container) else node


def _literal(node: Any) -> Any:
    """Return plain data as OmegaConf stores it, with everything that looks like a reference escaped as text."""
    if isinstance(node, dict):
        return {key: _literal(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_literal(value) for value in node]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", node) if isinstance(node, str) else node
