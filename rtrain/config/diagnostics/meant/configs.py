"""The command with the built-in config that is written for a trainer."""

from __future__ import annotations

import shlex

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.compose.search_space import as_text, full_key
from rtrain.config.files import locations
from rtrain.config.files.locations import Primary
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.secrets.masked import mask_word


def command_of_choice(request: Request) -> str | None:
    """Return the command with the built-in config that is written for the trainer typed; None if there is none."""
    chosen = next((split_word(word.text)[2] for word in request.words if word.key == "trainer"), None)
    return command_for(chosen, request) if chosen is not None else None


def command_for(trainer: str, request: Request) -> str | None:
    """Return the user's command with the first built-in config that is written for a trainer; None if there is none.

    What it says of the trainer is left out: it was meant for another one. The user's own dataset stays.
    """
    for path in sorted(locations.builtin_config_dir().glob("*.yaml")):
        if {"trainer": trainer} in (read_yaml(path)[0].get("defaults") or []):
            kept = [one for one in request.overrides if not f"{full_key(split_word(one)[1])}.".startswith("trainer.")]
            return shlex.join(["rtrain", "fit", path.stem, *map(mask_word, [*_data_of(request.primary), *kept])])
    return None


def _data_of(config: Primary) -> list[str]:
    """Return the words that choose and set the dataset as a config of the user's does."""
    written = {} if config.builtin else read_yaml(config.path)[0]
    choices = [one for one in written.get("defaults") or [] if isinstance(one, dict)]
    kinds = [f"dataset={one['dataset']}" for one in choices if isinstance(one.get("dataset"), str)]
    keys = written.get("dataset")
    return (
        [*kinds, *(f"dataset.{key}={as_text(value)}" for key, value in keys.items())]
        if isinstance(keys, dict)
        else kinds
    )
