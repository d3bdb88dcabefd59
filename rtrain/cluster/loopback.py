"""A cluster that is reached from this machine alone, by those who have its token."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtrain.process.variables import variables_set

LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Of 0, Ray takes 127.0.0.1 for the address of this machine, and binds to it alone."""


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Have the cluster that starts in the block listen on 127.0.0.1 alone, and answer those who have its token.

    Ray has a switch for it, which is meant for Macs. It is undone, as this process may join another cluster later.
    """
    from ray._private import ray_constants

    if os.environ.get("RAY_AUTH_MODE", "token") == "token":  # Ray's own default for a cluster that it starts
        _keep_token_private()
    before, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        with variables_set({LOOPBACK: "0"}):
            yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _keep_token_private() -> None:
    """Make the token as Ray would, but readable by this account alone, which Ray leaves to the umask."""
    path = token_path()
    if "RAY_AUTH_TOKEN" in os.environ:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        with suppress(PermissionError):  # another user's, but readable
            path.chmod(path.stat().st_mode & 0o700)
    except OSError:  # Ray says what is wrong with the place
        return


def token_path() -> Path:
    """Return the place where Ray keeps and looks for the token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
