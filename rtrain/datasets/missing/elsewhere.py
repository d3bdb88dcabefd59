"""Data that a relative path doesn't find from the current folder, but from that of the config or the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtrain.datasets.remote import is_glob
from rtrain.errors import DatasetError, MissingDataError


@contextmanager
def folder_named(root: Path | None, below: Path | None) -> Iterator[None]:
    """Have an error about missing data in the block name the folder from which a relative path leads to it.

    Args:
        root: The project's folder, if there is one.
        below: A file or folder of the config or the run: commands are given in one of the folders above it.
    """
    try:
        yield
    except DatasetError as error:
        missing = next((one for one in (error, error.__cause__) if isinstance(one, MissingDataError)), None)
        folders = [*filter(None, [root]), *(() if below is None else below.absolute().parents)]
        found = next((one for one in folders if missing and one != one.parent and _leads(one, missing.place)), None)
        if found is not None:
            error.hint = (
                f"It is in {found}, and relative paths start from the current folder.\n"
                f"Run the command there: cd {shlex.quote(str(found))}"
            )
        raise


def _leads(folder: Path, place: str) -> bool:
    """Return whether a relative path leads to something from a folder. A pattern with ``**`` would look everywhere."""
    if not place.strip() or place.startswith(("/", "~")):
        return False
    try:
        return (folder / place).exists() or (is_glob(place) and "**" not in place and any(folder.glob(place)))
    except (OSError, ValueError):  # a text that can't be a path
        return False
