"""Whether the keys at the top of a file have the shape of a config: sections are mappings, keys are text."""

from __future__ import annotations

import re
from typing import Any

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key
from rtrain.config.diagnostics.screen import render
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.files.yaml_file import YamlFile
from rtrain.config.files.yaml_syntax import spaced, unspaced
from rtrain.config.secrets.names import is_secret
from rtrain.errors import ConfigError

CHOOSING = ("trainer", "dataset", *GROUPS)
"""Keys at which the name of an option may be meant."""
SECTIONS = (*CHOOSING, "datasets", "scaling", "run", "cluster", "sweep", "vars")
"""Keys that hold mappings."""
NAMED = (
    "a trainer reads a single dataset: dataset: {type: csv, path: FILE, label: COLUMN}; "
    "for a train loop, use names instead of dashes"
)
"""What there is to say about a list of datasets."""


def check_shape(data: dict[str, Any], file: YamlFile, *, changes_config: bool = False) -> None:
    """Check the keys at the top of a config.

    Args:
        data: What the file says.
        file: Where it stands.
        changes_config: It changes what another config has chosen, as an experiment does.

    Raises:
        ConfigError: A section isn't a mapping, a key has dots, or an entry of the defaults list is an override.
    """
    for key, value in data.items():
        _check_key(key, value, file)
    defaults = data.get("defaults")
    for number, entry in enumerate(defaults if isinstance(defaults, list) else ()):
        if isinstance(entry, str) and (fixed := spaced(entry)) is not None:
            place = render(
                "an entry of a defaults list must be '- group: option'", file.spot(["defaults", str(number)])
            )
            raise ConfigError(place, "  " + to_try(f"- {fixed}"))
    texts = {key: value for key, value in data.items() if key in CHOOSING and isinstance(value, str)}
    chosen = {key: value for key, value in texts.items() if "${" not in value}
    if chosen and not any(map(spaced, chosen.values())):
        raise _choices(chosen, data, file, "override /" if changes_config else "")
    for key in SECTIONS:
        _check_section(key, data.get(key), file)


def _check_key(key: Any, value: Any, file: YamlFile) -> None:
    if key is None or not isinstance(key, str | int | float):
        raise ConfigError(f"{shown(file.path)}: a key must be text, not {'null' if key is None else key!r}")
    head, dot, rest = str(key).partition(".")
    if dot and rest and head in (*SECTIONS, *KEYS):
        raise _dotted(str(key), value, file)


def _check_section(key: str, value: Any, file: YamlFile) -> None:
    spot = file.spot([key])
    if value is None or isinstance(value, dict) or spot is None or (isinstance(value, str) and "${" in value):
        return
    if isinstance(value, str) and (fixed := spaced(value)) is not None:
        raise unspaced(spot, f"{key}: {{{fixed}}}")
    message = render(
        f"{key} must be a mapping of keys to values, not {'a list' if isinstance(value, list) else value}", spot
    )
    mappings = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    if key == "datasets" and mappings:
        raise ConfigError(message, "  " + NAMED)
    count = re.fullmatch(r"(\d+)( \w+)?", str(value)) if key == "scaling" else None
    inside = f"num_workers: {count[1]}" if count is not None else "KEY: VALUE"
    raise ConfigError(message, "  remove the dashes" if mappings else "  " + to_try(f"{key}: {{{inside}}}"))


def _choices(chosen: dict[str, str], data: dict[str, Any], file: YamlFile, sign: str) -> ConfigError:
    """Return the error about options that are chosen by keys, with the defaults list that does."""
    first = next(key for key in data if key in chosen)
    message = f"option '{chosen[first]}' of '{first}' must be chosen in the defaults list"
    entries = ", ".join(f"{sign}{key}: {value}" for key, value in chosen.items())
    hint = "  " + to_try(f"defaults: [{entries}]" if sign else f"defaults: [{entries}, _self_]")
    if "defaults" in data:
        hint += "\n  and keep the other entries of that list"
    return ConfigError(render(message, spot=file.spot([first])), hint)


def _dotted(key: str, value: Any, file: YamlFile) -> ConfigError:
    parts = expand_key(key).split(".")
    is_short = not isinstance(value, dict | list) and not is_secret(parts[-1])
    nested = ": {".join(parts[:-1]) + f": {{{parts[-1]}: {value if is_short else '...'}" + "}" * (len(parts) - 1)
    return ConfigError(
        render(f"a key in a file can't have dots: '{key}'", spot=file.spot([key])), "  " + to_try(nested)
    )
