"""Data that a relative path doesn't find from the current folder, but from that of the config or the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtrain.datasets.remote import is_glob
from rtrain.errors import DatasetError


@contextmanager
def folder_named(node: Any, root: Path | None, below: Path | None) -> Iterator[None]:
    """Have an error about data in the block name the folder from which a relative path leads to it.

    Args:
        node: The section ``dataset``.
        root: The project's folder, if there is one.
        below: A file or folder of the config or the run: commands are given in one of the folders above it.
    """
    try:
        yield
    except DatasetError as error:
        folders = [*filter(None, [root]), *(() if below is None else below.absolute().parents)]
        for text in _texts(node):
            found = _folder_of(text, folders)
            if found is not None:
                error.hint = (
                    f"It is in {found}, and relative paths start from the current folder.\n"
                    f"Run the command there: cd {shlex.quote(str(found))}"
                )
                break
        raise


def _texts(node: Any) -> Iterator[str]:
    """Yield all texts in a section."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping | Sequence):
        for one in node.values() if isinstance(node, Mapping) else node:
            yield from _texts(one)


def _folder_of(text: str, folders: Iterable[Path]) -> Path | None:
    """Return the first folder from which a relative path leads to something, if it leads to nothing from this one."""
    if not text.strip() or text.startswith(("/", "~")) or "://" in text or "\0" in text or _leads(Path(), text):
        return None
    return next((one for one in folders if one != one.parent and _leads(one, text)), None)


def _leads(folder: Path, text: str) -> bool:
    try:
        return (folder / text).exists() or (is_glob(text) and any(folder.glob(text)))
    except (OSError, ValueError):  # a text that is no path
        return False
