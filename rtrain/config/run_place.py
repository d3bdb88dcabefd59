"""Where a run may lie: below the run root, unless the user typed another place."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from omegaconf import DictConfig

from rtrain.errors import ConfigError


def check_place(cfg: DictConfig, root_dir: str, typed: Collection[str], *, of_sweep: bool) -> None:
    """Refuse a folder, made of names in a config, that leaves ``run.root_dir`` or the folder of its sweep.

    Symbolic links count as the folders that they stand for: whoever made them wanted the files there.

    Args:
        cfg: The composed config, with the job's ``hydra.runtime.output_dir``.
        root_dir: ``run.root_dir``.
        typed: Keys of the command line. A place that is typed there may be anywhere.
        of_sweep: The job is one of a sweep.

    Raises:
        ConfigError: Names the key and both folders.
    """
    folder, root = Path(cfg.hydra.runtime.output_dir), _absolute(root_dir)
    if cfg.hydra.output_subdir is not None:
        _check_inside("hydra.output_subdir", _absolute(str(folder / str(cfg.hydra.output_subdir))), folder)
    if not of_sweep:
        if not _is_typed("hydra.run.dir", typed):
            _check_inside("hydra.run.dir", folder, root)
        return
    sweep = _absolute(str(cfg.hydra.sweep.dir))
    if not _is_typed("hydra.sweep.dir", typed):
        _check_inside("hydra.sweep.dir", sweep, root)
    _check_inside("hydra.sweep.subdir", folder, sweep)


def _check_inside(key: str, folder: Path, root: Path) -> None:
    if folder != root and root not in folder.parents:
        hint = "Set run.root_dir." + ("" if key.endswith("subdir") else f" Or type {key}=... on the command line.")
        raise ConfigError(f"{key} leads to {folder}, which lies outside of {root}.", hint)


def _absolute(folder: str) -> Path:
    return Path(os.path.abspath(folder))  # noqa: PTH100


def _is_typed(key: str, typed: Collection[str]) -> bool:
    return any(key == one or key.startswith(f"{one}.") for one in typed)
