"""What a config may ask for in ``${...}`` beyond Hydra's and OmegaConf's own: ids, and folders to find data in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.basecontainer import BaseContainer
from omegaconf.resolvers import oc

from rtrain.config.diagnostics.omegaconf_messages import MAX_SHOWN
from rtrain.config.secrets.redact import MIN_LENGTH

E = TypeVar("E", bound=Exception)


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
        raise ValueError(f"package '{name}' is not installed")
    return next(iter(places))


@contextmanager
def named_variables() -> Iterator[Callable[[E], E]]:
    """Note the environment variables that ``${oc.env:NAME}`` reads in the block.

    Yields a function that puts their names in place of their values in what an error says.
    """
    seen: dict[str, str] = {}

    def env(key: str, *default: Any) -> Any:
        value = oc.env(key, *default)
        if os.environ.get(key):
            text, name = str(value), f"${{oc.env:{key}}}"
            seen.update({f"'{text}'": name, f"'{text[:MAX_SHOWN]}...'": name})
            seen.update({text: name} if len(text) >= MIN_LENGTH else {})
        return value

    def named(error: E) -> E:
        for attribute in ("message", "hint"):
            said = getattr(error, attribute, None)
            if isinstance(said, str):
                for value in sorted(seen, key=len, reverse=True):
                    said = said.replace(value, seen[value])
                setattr(error, attribute, said)
        return error

    with replaced_resolvers({"oc.env": env}):
        yield named


@contextmanager
def replaced_resolvers(resolvers: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Let resolvers, by name, stand in for those that are registered while the block runs; blocks may be nested."""
    before = {name: BaseContainer._resolvers[name] for name in resolvers}
    for name, resolver in resolvers.items():
        OmegaConf.register_new_resolver(name, resolver, replace=True)
    try:
        yield
    finally:
        BaseContainer._resolvers.update(before)
