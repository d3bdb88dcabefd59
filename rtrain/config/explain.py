"""Turn what Hydra and OmegaConf raise into one screen of plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.request import Request
from rtrain.config.resolve import Missing, NoPackage, Unresolved
from rtrain.config.validate import Invalid
from rtrain.errors import ConfigError


@contextmanager
def explained(request: Request) -> Iterator[None]:
    """Turn errors of composing and checking into ConfigError; must not surround the user's task."""
    try:
        yield
    except Invalid as error:
        raise ConfigError("\n".join(f"{one.key}: {one.message}" for one in error.problems)) from error
    except (HydraException, OmegaConfBaseException, Missing, NoPackage, Unresolved, ValueError) as error:
        raise ConfigError(str(error)) from error
