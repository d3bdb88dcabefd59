"""Where results may be written: no file is lost, and none that is read is replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtrain.config.files.data_files import kind_of
from rtrain.config.files.home import expanded
from rtrain.datasets.files import files_at
from rtrain.datasets.remote import is_glob
from rtrain.errors import ConfigError
from rtrain.storage.stores import is_url


def check_folder(name: str) -> None:
    """Raise a ConfigError unless the folder around an output is there, and can be written."""
    if is_url(name):
        hint = f"Write a file here, then copy it: aws s3 cp, gcloud storage cp or azcopy copy FILE {name}"
        raise ConfigError(f"{name}: results are written to this machine, not to a URL.", hint)
    folder = Path(name).absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{name}: there is no folder {Path(name).parent}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{name}: {folder} can't be written.", "Use another folder.")


def check_free(path: Path, name: str, *, force: bool) -> None:
    """Raise a ConfigError if something is at ``path`` that predictions may not replace."""
    if path.is_dir():
        names = [one.name for one in path.iterdir()]
        if not all(one.startswith("part-") and one.endswith(".parquet") for one in names):
            message = f"{name} contains files that are not predictions: {', '.join(sorted(names)[:3])}"
            raise ConfigError(message, "Use another folder, or a new one below it.")
        if names and not force:
            raise ConfigError(
                f"{name} already contains predictions.", "Use another folder, or replace it with --force."
            )
    elif path.exists() and not force:
        raise ConfigError(f"{name} already exists.", "Use another file, or replace it with --force.")


def check_evaluation(name: str) -> None:
    """Raise a ConfigError unless an evaluation can be written to ``name``, and replaces another one at most."""
    check_folder(name)
    path = Path(name)
    if path.is_dir():
        raise ConfigError(f"{name} is a folder.", "Name a file.")
    if path.exists() and not _is_evaluation(path):
        raise ConfigError(f"{name} already exists and is not an evaluation.", "Use another file.")


def _is_evaluation(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "metrics" in found


def check_not_read(output: Path, dataset: Mapping[str, Any]) -> None:
    """Raise a ConfigError if ``output`` is among the files that a dataset reads.

    Args:
        output: What is to be written.
        dataset: Its keys.
    """
    final, named = output.resolve(), dataset.get("path")
    if not final.exists():
        return
    may_be_read = dataset.get("type") in (kind_of(final.name), "text")
    for text in named.values() if isinstance(named, Mapping) else [named]:
        if not isinstance(text, str) or is_url(text):
            continue
        place = expanded(text)
        for one in files_at(text, ()) if is_glob(text) and not place.exists() else [place]:
            read = one.resolve()
            if final == read or final in read.parents or (read in final.parents and may_be_read):
                raise ConfigError(f"{output}: the rows are read from it, and would be replaced.", "Use another name.")
