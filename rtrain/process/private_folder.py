"""The folder of this account for sockets and logs of processes that outlive a command."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def private_folder() -> Path | None:
    """Return the folder, which only this account can read and write; None where another account has taken its name."""
    folder = Path(f"/tmp/rtrain-{os.geteuid()}")  # short, as names of sockets have to be
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    return folder if own else None
