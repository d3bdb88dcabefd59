"""What a config may ask for in ``${...}`` beyond Hydra's and OmegaConf's own: ids, and folders to find data in."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from omegaconf import OmegaConf


def register_resolvers(config_dir: Path) -> None:
    """Register ``rtrain_id``, ``config_dir`` and ``package_dir`` for one command line, whose config is in a folder."""
    run_id = os.urandom(2).hex()
    OmegaConf.register_new_resolver("rtrain_id", lambda: run_id, replace=True)
    OmegaConf.register_new_resolver("config_dir", lambda: str(config_dir), replace=True)
    OmegaConf.register_new_resolver("package_dir", package_dir, replace=True)


def package_dir(name: str) -> str:
    """Return the folder of an installed package, which may ship data; the package is not imported.

    Raises:
        ValueError: There is no such package.
    """
    spec = find_spec(name) if name.isidentifier() else None
    places = spec.submodule_search_locations if spec is not None else None
    if not places:
        raise ValueError(f"there is no installed package '{name}'")
    return next(iter(places))
