"""Where a run may lie: below the run root, unless the user typed another place."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rtrain.config.compose.nodes import full_key
from rtrain.config.secrets.masked_config import secrets_hidden
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.redact import variables_in
from rtrain.config.secrets.urls import MASK
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import RECORDS

_MASKED_IN_URL = re.compile(r"[?&][\w-]+=\*\*\*(?![^&#])|://\*\*\*@")
"""Of a URL."""


def check_place(
    cfg: DictConfig, root_dir: str, shown: Mapping[str, Any], typed: Collection[str], *, of_sweep: bool
) -> None:
    """Refuse a folder, made of names in a config, that leaves ``run.root_dir`` or the folder of its sweep.

    Symbolic links count as the folders that they stand for: whoever made them wanted the files there. Everybody sees
    the names of folders, so none may be a secret, or a variable that is named like one.

    Args:
        cfg: The composed config, with the job's ``hydra.runtime.output_dir``.
        root_dir: ``run.root_dir``.
        shown: The section ``run`` without secrets, with variables by their names.
        typed: Keys that the user sets. A place that is typed may be anywhere.
        of_sweep: The job is one of a sweep.

    Raises:
        ConfigError: Names the key and both folders, or the variable.
    """
    _check_inside_of_root(cfg, root_dir, typed, of_sweep=of_sweep)
    _check_no_secret(cfg, shown)


def _check_inside_of_root(cfg: DictConfig, root_dir: str, typed: Collection[str], *, of_sweep: bool) -> None:
    folder, root = Path(cfg.hydra.runtime.output_dir), _absolute(root_dir)
    if cfg.hydra.output_subdir is not None:
        _check_inside("hydra.output_subdir", _absolute(str(folder / str(cfg.hydra.output_subdir))), folder, below=True)
    if not of_sweep:
        if "hydra.run.dir" not in typed:
            _check_inside("hydra.run.dir", folder, root)
            check_unused("hydra.run.dir", folder)
        return
    sweep = _absolute(str(cfg.hydra.sweep.dir))
    if "hydra.sweep.dir" not in typed:
        _check_inside("hydra.sweep.dir", sweep, root)
    _check_inside("hydra.sweep.subdir", folder, sweep)


def check_unused(key: str, folder: Path) -> None:
    """Refuse a folder with files of something else than a run or sweep, which records could replace.

    Args:
        key: What names it.
        folder: Where a run or a sweep is to be recorded.

    Raises:
        ConfigError: Names both.
    """
    if not folder.is_dir() or any((folder / name).is_file() for name in RECORDS):
        return
    if any(one.name != ".lock" for one in folder.iterdir()):
        raise ConfigError(
            f"{key} resolves to {folder}, which already contains other files.",
            f"Name a new folder, leave it out, or type {key}=... on the command line.",
        )


def _check_no_secret(cfg: DictConfig, run: Mapping[str, Any]) -> None:
    with secrets_hidden(cfg):
        resolved = {f"hydra.{key}.dir": str(OmegaConf.select(cfg, f"hydra.{key}.dir")) for key in ("run", "sweep")}
    hydras = {f"hydra.{key}.dir": cfg.hydra[key]._get_node("dir")._value() for key in ("run", "sweep")}
    for key, text in {"run.name": run["name"], "run.root_dir": run["root_dir"], **hydras}.items():
        secret = next((name for name in variables_in(str(text)) if is_secret(name)), None)
        if secret is not None:
            raise ConfigError(f"{key}: the variable {secret} looks like a secret, and folder names are not private.")
        if MASK in f"{text}{resolved.get(key, '')}":
            raise ConfigError(f"{key} refers to a secret, and folder names are not private.")


def check_not_masked(data: Mapping[str, Any], *, of_run: bool) -> None:
    """Refuse to train with a mask in place of a secret that a run did not write down.

    Args:
        data: The resolved config.
        of_run: It was written by a run; in another one only secrets can be masked.

    Raises:
        ConfigError: Names the keys.
    """
    found = [path for path, secret in _masked(data) if of_run or secret]
    if found:
        raise ConfigError(
            f"{', '.join(found)}: the value is {MASK}, since secrets are not recorded.",
            f"Set it again: {found[0]}=...; or use in the config ${{oc.env:NAME}}.",
        )


def _masked(data: Any, path: str = "", *, secret: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield where values are masked: the full key of each, and whether it is a secret by it."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _masked(value, full_key(path, str(name)), secret=secret or is_secret(str(name)))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _masked(value, path, secret=secret)
    elif isinstance(data, str) and (data == MASK or _MASKED_IN_URL.search(data)):
        yield path, secret


def _check_inside(key: str, folder: Path, root: Path, *, below: bool = False) -> None:
    if (below or folder != root) and root not in folder.parents:
        hint = "Set run.root_dir." + ("" if key.endswith("subdir") else f" Or type {key}=... on the command line.")
        raise ConfigError(f"{key} resolves to {folder}, which is outside {root}.", hint)


def _absolute(folder: str) -> Path:
    return Path(os.path.abspath(folder))  # noqa: PTH100
