"""Whether the hub of models can be reached: without a network its library retries for 20 seconds."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

HUB = "https://huggingface.co"
NOT_THERE = "it isn't a folder, was not downloaded before, and the hub can't be reached"
"""Why a model can't be had without a network."""


def is_reachable() -> bool:
    """Return whether the name of the hub can be resolved here, or a proxy may do so."""
    host = urlsplit(os.environ.get("HF_ENDPOINT") or HUB).hostname
    if host is None or getproxies():
        return True
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True


def local_only(name: str | None) -> dict[str, bool]:
    """Return the option of the library that finds what was downloaded before alone, where ``name`` can't be fetched."""
    return {} if name is None or Path(name).is_dir() or is_reachable() else {"local_files_only": True}


def commit_of(name: str) -> str | None:
    """Return the commit of a model that was downloaded from the hub; None if the library's cache doesn't know it."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(name, "config.json")
    return Path(file).parent.name if isinstance(file, str) else None


def at_revision(commit: str | None) -> dict[str, str]:
    """Return the option of the library that takes a commit; without one, the newest is taken."""
    return {} if commit is None else {"revision": commit}
