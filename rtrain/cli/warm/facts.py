"""What has to be the same where a command is given and where it runs, for it to end the same."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtrain.process.private_folder import private_folder
from rtrain.runs.filesystem.files import current_umask

PLACE = "RTRAIN_UP"
"""Variable that holds where the socket is, if not in the folder of this account; of ``off``, none is used."""
OF_TERMINALS = frozenset(
    (
        *("_", "COLORTERM", "COLUMNS", "DISPLAY", "FORCE_COLOR", "HISTFILE", "LINES", "LS_COLORS", "NO_COLOR"),
        *("OLDPWD", "PS1", "PWD", "SHLVL", "STY", "TERM", "TMUX", "TMUX_PANE", "WINDOWID"),
        *("XDG_RUNTIME_DIR", "XDG_SEAT", "XDG_VTNR"),
    )
)
"""Variables that differ from one terminal to the next, and mean nothing to a worker."""
BEGINNINGS = ("DBUS_", "GNOME_", "GPG_", "KITTY_", "SSH_", "TERM_", "VSCODE_", "VTE_", "WEZTERM_", "XDG_SESSION_")
"""What the names of further ones begin with."""


def socket_path() -> Path | None:
    """Return where ``rtrain up`` listens; None if it is not to be used, or can't be, safely."""
    given = os.environ.get(PLACE)
    if given:
        return None if given == "off" else Path(given).absolute()
    folder = private_folder()
    return None if folder is None else folder / "up.socket"


def companion(path: Path, kind: str) -> Path:
    """Return the file of a kind, ``log`` or ``lock``, that belongs to a socket."""
    return path.with_name(f"{path.name}.{kind}")


def of_terminal(name: str) -> bool:
    """Return whether a variable may differ: it is set for the command alone."""
    return name in OF_TERMINALS or name.startswith(BEGINNINGS)


def facts(folder: Path | None = None) -> dict[str, Any]:
    """Return what this process was started with, as JSON has it.

    Args:
        folder: Where commands are given; None: the current one.
    """
    limits = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    return {
        "variables": dict(os.environ),
        "folder": identity(folder or Path.cwd()),
        "machine": os.uname().nodename,
        "account": [os.geteuid(), os.getegid(), sorted(os.getgroups())],
        "Python": [sys.executable, sys.prefix, list(sys.flags), sys.warnoptions],
        "cores": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "priority": [
            os.getpriority(os.PRIO_PROCESS, 0),
            os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None,
        ],
        "umask": current_umask(),
        "limits (ulimit)": [list(resource.getrlimit(getattr(resource, name))) for name in limits],
    }


def identity(folder: Path) -> list[Any]:
    """Return what tells a folder from another one that has its name later."""
    about = folder.stat()
    return [str(folder), about.st_dev, about.st_ino]


def difference(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """Return what differs between the facts of two processes, in words; None if nothing does."""
    mine, others = here.get("variables", {}), there.get("variables", {})
    differ = sorted(name for name in mine.keys() | others.keys() if mine.get(name) != others.get(name))
    names = [name for name in differ if not of_terminal(name)]
    if names:
        return f"another value of {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
    rest = [name for name in {**here, **there} if name != "variables" and here.get(name) != there.get(name)]
    return f"not the same {rest[0]}" if rest else None
