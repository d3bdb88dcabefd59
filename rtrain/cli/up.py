"""``rtrain up`` and ``rtrain down``: keep a cluster and imported frameworks ready for the next run, or no longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rtrain.cli.listing import check_name
from rtrain.cli.warm import client
from rtrain.cli.warm.facts import PLACE, companion, socket_path
from rtrain.cli.warm.messages import IN_USE, READY, STARTING, TAKEN, ClosedError
from rtrain.errors import ConfigError, RtrainError, first_line
from rtrain.process.terminal import say
from rtrain.trainers.registry import load_trainer, packages, plugins

START_SECONDS = 120.0
POLL_SECONDS = 0.2
LONGEST = 100
"""Bytes of the path of a socket: Linux takes 107, macOS 103."""
NOTHING = "rtrain up keeps nothing ready"


def up(
    workers: Annotated[int, typer.Option("--workers", min=1, help="Workers of the runs to come, at most.")] = 1,
    trainer: Annotated[
        str, typer.Option("--trainer", metavar="TRAINER", help="Trainer of the runs to come.")
    ] = "torch",
    idle_minutes: Annotated[float, typer.Option("--idle-minutes", min=0.0, help="End it after so long unused.")] = 30.0,
    status: Annotated[bool, typer.Option("--status", help="Say what is ready, and start nothing.")] = False,
) -> None:
    """Keep Ray and imports ready: runs start in seconds."""
    found = _asked("status")
    if not status:
        options = {"folder": str(Path.cwd()), "trainer": trainer, "workers": workers, "idle_minutes": idle_minutes}
        _check_trainer(trainer)
        if found is None or found["differs"] is not None or found["options"] != options:
            if found is not None and found["state"] == IN_USE:
                raise RtrainError(f"a run uses what process {found['process']} keeps ready.", "Wait for its end")
            _end(found)
            found = _started(options)
        else:
            found = _ready(found)
    say(NOTHING if found is None else _shown(found))


def down() -> None:
    """End what rtrain up keeps ready, but no run that uses it."""
    found = _asked("status")
    _end(found)
    if found is None:
        say(NOTHING)
    elif found["state"] == IN_USE:
        say(f"process {found['process']} ends when the run that uses it is over")
    else:
        say(f"ended process {found['process']}")


def _check_trainer(name: str) -> None:
    check_name(name, packages(), "trainer")
    if not load_trainer(name).can_fork:
        able = [name for name, plugin in plugins() if plugin.can_fork]
        raise ConfigError(f"rtrain up can't keep workers of {name} ready.", f"It can those of {', '.join(able)}")


def _asked(question: str) -> dict[str, Any] | None:
    """Return the answer of what is there; None if nothing is.

    Raises:
        RtrainError: It does not answer.
    """
    try:
        connection, answer = client.asked(question)
    except (ClosedError, ConnectionError):
        return None
    except OSError as error:
        hint = f"End it: kill -9 $(cat {companion(socket_path() or Path(), 'lock')})"
        raise RtrainError(f"what rtrain up keeps ready does not answer: {first_line(error)}.", hint) from error
    if connection is None:
        return None
    connection.close()
    return answer


def _end(found: dict[str, Any] | None) -> None:
    """End what is there, after the run that uses it; clear away what is left of one that was killed."""
    path = socket_path()
    if path is None:
        return
    if found is None:
        if path.is_socket():
            path.unlink()
        return
    _asked("end")
    deadline = time.monotonic() + START_SECONDS
    while found["state"] != IN_USE and path.exists() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _started(options: dict[str, Any]) -> dict[str, Any]:
    """Start it, and return its status when it is ready.

    Raises:
        RtrainError: It does not start, or another one was started meanwhile.
    """
    log = companion(_place(), "log")
    command = [sys.executable, "-m", "rtrain.cli.warm", json.dumps(options)]
    with log.open("a") as file:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd="/"
        )
    found, deadline = None, time.monotonic() + START_SECONDS
    try:
        while found is None and time.monotonic() < deadline:
            is_over = server.poll() not in (None, TAKEN)
            time.sleep(POLL_SECONDS)
            found = _asked("status")
            if found is None and is_over:
                break
        found = _ready(found)
    except KeyboardInterrupt:
        server.terminate()
        raise
    if found is None:
        raise RtrainError("what rtrain up has started does not answer.", f"Read {log}")
    if found["options"] != options:
        raise RtrainError("another rtrain up was started at the same time, with other options.", "Run it again")
    return found


def _ready(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Wait until what is starting is ready, and return its status."""
    deadline = time.monotonic() + START_SECONDS
    while found is not None and found["state"] == STARTING and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        found = _asked("status")
    return found


def _place() -> Path:
    """Return where it can listen.

    Raises:
        ConfigError: There is no place.
    """
    path = socket_path()
    if path is None:
        why = f"{PLACE} is off" if PLACE in os.environ else "another account has taken the folder of this one in /tmp"
        raise ConfigError(f"rtrain up has no place for its socket: {why}.", f"Name a file: export {PLACE}=~/up.socket")
    if len(os.fsencode(path)) > LONGEST:
        raise ConfigError(f"{path} is too long for a socket.", f"Name a shorter path in {PLACE}")
    if path.exists() and not path.is_socket():
        raise ConfigError(f"{path} exists, and is not a socket.", f"Name another path in {PLACE}")
    log = companion(path, "log")
    try:
        log.touch(0o600)
    except OSError as error:
        raise ConfigError(f"rtrain up can't write {log}: {first_line(error)}") from error
    return path


def _shown(found: dict[str, Any]) -> str:
    trainer, workers = found["options"]["trainer"], found["options"]["workers"]
    unused = f", unused for {found['idle']:.0f} s" if found["state"] == READY else ""
    lines = [
        f"{found['state']}: {trainer}, {workers} worker{'s' if workers > 1 else ''}",
        f"process {found['process']}{unused}; runs so far: {found['runs']}",
    ]
    if found["differs"] is not None:
        lines.append(f"not for commands from here: {found['differs']}")
    return "\n".join(lines)
