"""A part of the trainer that is named as other tools do, without a ``_target_``: ``optimizer: {name: adamw}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.diagnostics.meant.class_names import class_called, homes_of
from rtrain.config.diagnostics.meant.examples import node_at
from rtrain.config.diagnostics.meant.keys.wrong_keys import WrongKeys
from rtrain.config.did_you_mean import plain

NAMES = ("name", "type", "_name_", "class_path", "class_name", "class", "cls", "target", "id", "kind")
"""Keys that other tools have for what a part is."""
INSIDE = ("init_args", "kwargs", "params", "args", "options", "config", "_kwargs_")
"""Keys below which they have its arguments."""
_UNCHOSEN = re.compile(r"(\w+) is not chosen|trainer\.(\w+): has no _target_")


def unbuilt_part(message: str) -> str | None:
    """Return the key of the part of the trainer of which a message says that nothing builds it; None for others."""
    found = _UNCHOSEN.match(message)
    return f"trainer.{found[1] or found[2]}" if found is not None else None


def how_to_choose(wrong: WrongKeys, part: str) -> str | None:
    """Return the line that says how a part is chosen which a file names in another way; None if it doesn't.

    Args:
        wrong: Knows the keys of the config.
        part: The key of the part: ``trainer.optimizer``.
    """
    node = node_at(wrong.composed, part)
    given: Mapping[str, Any] = node if isinstance(node, DictConfig) else {}
    key = next((one for one in NAMES if isinstance(given.get(one), str)), None)
    short = part.rpartition(".")[2]
    if key is None:
        return None
    inside = next((one for one in INSIDE if one in given), None)
    more = f"; move the keys below {inside} next to it" if inside is not None else ""
    conf = dict(wrong.keys.confs).get("trainer")
    has_options = short in GROUPS and not getattr(conf, "foreign", ())  # those are of another framework
    options = wrong.request.app.loader.get_group_options(part.replace(".", "/")) if has_options else []
    name = wrong.translated(part, given[key]) or given[key]
    option = next((one for one in options if plain(one) == plain(name)), None)
    if option is not None:
        return f"the defaults list chooses it: - {short}: {option}, in place of {key}: {given[key]}{more}"
    homes = homes_of(conf, part)
    path = given[key] if "." in given[key] else class_called(name, homes)
    chosen = f"- {short}: {'|'.join(options)} in the defaults list chooses it, or " if options else ""
    return f"{chosen}set its class: {short}: {{_target_: {path or 'package.Class'}}}{more}"
