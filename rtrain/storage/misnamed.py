"""A URL at which no run is: the trial that its number means, or the error that says what is there instead."""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import partial

from rtrain.config.did_you_mean import did_you_mean, to_try
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import RECORDS
from rtrain.storage.access import patiently
from rtrain.storage.folders import Folder, open_folder
from rtrain.storage.stores import shown_url

MOST_ABOVE = 3
"""Folders between a file of a checkpoint and its run."""


def numbered_trial(url: str) -> str | None:
    """Return the URL of the trial that ``SWEEP/3`` means; None if it means none. It raises what the store says."""
    number = shown_url(url).rstrip("/").rpartition("/")[2]
    if not number.isdecimal():
        return None
    home = _above(url, 1)
    names = [one for one in patiently(lambda: open_folder(home).folders()) if one.startswith(f"{int(number):03d}-")]
    return _above(url, 1, names[0]) if len(names) == 1 and _has_record(open_folder(home)) else None


def no_run_at(url: str, key: str) -> ConfigError | None:
    """Return the error for a URL at which there is something else; None if nothing is there.

    Args:
        url: As the user wrote it.
        key: What it was given for.
    """
    place = f"{key}: {shown_url(url).rstrip('/')}"
    for count in range(1, MOST_ABOVE + 1):
        home = _above(url, count)
        if home.rstrip("/").endswith(":") or home.rstrip("/").endswith(":/"):
            break
        if _has_record(open_folder(home)):
            return ConfigError(f"{place} is inside a run or sweep.", did_you_mean(shown_url(home)))
    if patiently(lambda: open_folder(url).folders()):
        return ConfigError(f"{place} is not a run.", to_try(shlex.join(["rtrain", "runs", "ls", shown_url(url)])))
    return None


def _above(url: str, count: int, *parts: str) -> str:
    """Return the URL of the folder so many levels above, or of one in it, with the options of the URL."""
    bare, sign, options = url.partition("?")
    above = bare.rstrip("/").rsplit("/", count)[0]
    return "/".join([above, *parts]) + sign + options


def _has_record(folder: Folder) -> bool:
    """Tell whether a folder is a run or a sweep."""
    for name in RECORDS:
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            patiently(partial(folder.open, name)).close()
            return True
    return False
