"""The built-in config that is written for a trainer."""

from __future__ import annotations

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.files import locations
from rtrain.config.files.yaml_file import read_yaml


def config_of_choice(request: Request) -> str | None:
    """Return the built-in config that is written for the trainer that the user has typed; None if there is none."""
    chosen = next((split_word(word.text)[2] for word in request.words if word.key == "trainer"), None)
    return config_for(chosen) if chosen is not None else None


def config_for(trainer: str) -> str | None:
    """Return the first built-in config that is written for a trainer; None if there is none."""
    for path in sorted(locations.builtin_config_dir().glob("*.yaml")):
        if {"trainer": trainer} in (read_yaml(path)[0].get("defaults") or []):
            return path.stem
    return None
