"""Paths that begin with ``~``."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root where it begins in a home directory; as in a shell, ``~unknown`` is a plain name."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises where there is no such account
