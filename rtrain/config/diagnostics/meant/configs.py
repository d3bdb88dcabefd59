"""The command with the built-in config that is written for a trainer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.compose.search_space import as_text, expanded_key
from rtrain.config.files import locations
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.secrets.masked import mask_word


def command_of_choice(request: Request) -> str | None:
    """Return the command with the built-in config that is written for the trainer typed; None if there is none."""
    chosen = next((split_word(word.text)[2] for word in request.words if word.key == "trainer"), None)
    return command_for(chosen, request) if chosen is not None else None


def command_for(trainer: str, request: Request) -> str | None:
    """Return the user's command with the first built-in config that is written for a trainer; None if there is none.

    Its words about the trainer are left out: they were meant for another one. The dataset stays.
    """
    kept = [one for one in request.overrides if not f"{expanded_key(split_word(one)[1])}.".startswith("trainer.")]
    for path in sorted(locations.builtin_config_dir().glob("*.yaml")):
        defaults = read_yaml(path)[0].get("defaults") or []
        if {"trainer": trainer} in defaults:
            words = [*_data_of(request, defaults), *kept]
            return shlex.join(["rtrain", "fit", path.stem, *map(mask_word, words)])
    return None


def _data_of(request: Request, defaults: Sequence[Any]) -> list[str]:
    """Return the words for the dataset of a config that a built-in one with ``defaults`` replaces."""
    if request.primary.builtin or any(word.key == "dataset" for word in request.words):
        return []
    written = read_yaml(request.primary.path)[0]
    chosen = [one for one in written.get("defaults") or [] if isinstance(one, dict) and "dataset" in one]
    keys = written.get("dataset")
    words = [f"dataset={one['dataset']}" for one in chosen if one not in defaults]
    return words + (
        [f"dataset.{key}={as_text(value)}" for key, value in keys.items()] if isinstance(keys, dict) else []
    )
