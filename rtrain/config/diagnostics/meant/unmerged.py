"""A list where the config has a mapping, or a mapping where it has a list: the two don't merge."""

from __future__ import annotations

from typing import Any

import yaml
from hydra.core.override_parser.types import ChoiceSweep
from hydra.errors import HydraException
from omegaconf import ListConfig
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.hydra_app import HydraApp
from rtrain.config.diagnostics.meant.keys.known_keys import KnownKeys
from rtrain.config.diagnostics.omegaconf_messages import merged_keys
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.validate import refusal
from rtrain.config.value_types.fields import hints_of

UNMERGED = "can't be merged with"


def unmerged(
    key: str, place: FileLocation | CliWord | None, cause: OmegaConfBaseException, known: KnownKeys, app: HydraApp
) -> str:
    """Return what is wrong with a list or a mapping that was set where the config has the other.

    A key that takes one value as well says what it takes.

    Args:
        key: With dots, from the root.
        place: Where it was set.
        cause: Says that the two can't be merged.
        known: The keys of the config.
        app: Reads overrides.
    """
    section, _, name = key.rpartition(".")
    is_list = _is_list(place, cause)
    conf = next((conf for one, conf in known.keys.confs if one == section and name in hints_of(conf)), None)
    value = _value_at(place, app) if conf is not None and hints_of(conf)[name] is Any else None
    if conf is not None and value is not None and (refused := refusal(conf, name, value)) is not None:
        return refused
    if value is not None or known.is_users(section):
        return f"a {'list' if is_list else 'mapping'} {UNMERGED} a {'mapping' if is_list else 'list'}"
    return "must be a mapping, not a list" if is_list else "must be a list, not a mapping"


def _is_list(place: FileLocation | CliWord | None, cause: OmegaConfBaseException) -> bool:
    if isinstance(place, CliWord):
        return (split_word(place.command[place.index])[2] or "").startswith("[")
    return not isinstance(merged_keys(cause)[-1][1], ListConfig)


def _value_at(place: FileLocation | CliWord | None, app: HydraApp) -> Any:
    """Return the list or the mapping that was set, of several values the first such; None if it can't be read."""
    try:
        if isinstance(place, CliWord):
            found = app.parser.parse_override(place.command[place.index]).value()
            several = found.list if isinstance(found, ChoiceSweep) else [found]
            found = next((one for one in several if isinstance(one, list | dict)), None)
        else:
            found = yaml.safe_load(place.value or "") if place is not None else None
    except (HydraException, yaml.YAMLError):
        return None
    return found if isinstance(found, list | dict) else None
