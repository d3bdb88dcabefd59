"""Which config groups and options there are, by the files alone: nothing is composed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rtrain.config.files.home import expanded
from rtrain.config.files.limits import MAX_BYTES
from rtrain.config.files.locations import CONFIG_FOLDERS, builtin_config_dir

_TYPE = re.compile(r"^type: *['\"]?([\w.-]+)", re.MULTILINE)
_DEFAULTS = re.compile(r"^defaults:", re.MULTILINE)


def usual_folders() -> list[Path]:
    """Return the folders of configs that a command in the current folder finds: the user's, then the built-in one."""
    return [*(path for path in map(Path, CONFIG_FOLDERS) if path.is_dir()), builtin_config_dir()]


def option_files(folders: Iterable[Path]) -> dict[str, dict[str, Path]]:
    """Return the file of each option, by group and name; the first folder that has one wins."""
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/**/*.yaml")):
            found.setdefault(path.parent.relative_to(folder).as_posix(), {}).setdefault(path.stem, path)
    return found


def plugin_of(option: Path) -> str | None:
    """Return the plugin that an option is for: its ``type``, else its own name; None if it includes others."""
    text = option.read_text(encoding="utf-8", errors="replace") if option.stat().st_size <= MAX_BYTES else ""
    if (given := _TYPE.search(text)) is not None:
        return given[1]
    return None if _DEFAULTS.search(text) else option.stem


def files_at(start: str, suffix: str = "") -> list[str]:
    """Return the paths that begin with ``start``: folders, with a slash, and files whose names end with ``suffix``."""
    folder, slash, name = start.rpartition("/")
    found = []
    for path in sorted(expanded(folder or slash or ".").glob("*")):
        if path.name.startswith(name) and (name or not path.name.startswith(".")):
            shown = f"{folder}{slash}{path.name}"
            found += [f"{shown}/"] if path.is_dir() else [shown] if path.name.endswith(suffix) else []
    return found
