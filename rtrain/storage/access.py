"""Whether a store takes, gives and deletes files, found out before a run begins."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

from rtrain.storage.folders import DiskFolder, Folder, open_folder, read
from rtrain.storage.stores import errors_named, is_temporary

PATIENCE_SECONDS = 20.0
"""How long requests to a busy or unreachable store are retried, not counting the time of the last request."""
PAUSE_SECONDS = 1.0

T = TypeVar("T")


def check_access(url: str, *parts: str, key: str) -> Folder:
    """Return the folder below a URL, in which a small file was written, read and deleted.

    Args:
        url: The store.
        parts: The folder there; it need not exist.
        key: The config key that holds the URL, for messages.

    Raises:
        ConfigError: The store refuses one of the three, does not answer, or needs a package that is not installed.
    """
    with errors_named(url, key):
        home = patiently(lambda: open_folder(url))
        if isinstance(home, DiskFolder) and not home.exists():  # as a disk of the network that is not mounted
            raise FileNotFoundError
        folder = patiently(lambda: open_folder(url, *parts))
        patiently(lambda: _probe(folder, f".rtrain-probe-{secrets.token_hex(4)}"))
    return folder


def patiently(ask: Callable[[], T]) -> T:
    """Return what ``ask`` returns; a store that is busy is asked again for a while."""
    until, pause = time.monotonic() + PATIENCE_SECONDS, PAUSE_SECONDS
    while True:
        try:
            return ask()
        except OSError as error:
            if not is_temporary(error) or time.monotonic() + pause > until:
                raise
        time.sleep(pause)
        pause *= 2


def _probe(folder: Folder, name: str) -> None:
    content = name.encode()
    folder.put(name, [content])
    if read(folder, name) != content:
        raise OSError("a file reads differently than it was written")
    folder.delete(name)
