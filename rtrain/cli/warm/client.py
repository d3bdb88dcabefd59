"""Hand a command to ``rtrain up``, and be its terminal: signals go there, what it ends with comes back."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rtrain.cli.warm.facts import facts, socket_path
from rtrain.cli.warm.messages import STREAMS, ClosedError, receive, send, send_streams
from rtrain.process.interrupts import heard
from rtrain.process.terminal import say

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
ANSWER_SECONDS = 10.0


def ran(words: Sequence[str]) -> int | None:
    """Run a command line where ``rtrain up`` waits for one, and return its exit code; None if it has to run here."""
    if {"-h", "--help"} & set(words):
        return None
    command = {"words": words, "program": sys.argv[0], "path": sys.path}
    try:
        connection, answer = asked("run", **command)
    except (ClosedError, OSError) as error:
        _say(f"it does not answer ({error or 'it has ended'}); `rtrain down` clears it away, or says how")
        return None
    if connection is None:
        return None
    with connection:
        if "refused" in answer:
            _say(answer["refused"])
            return None
        return _followed(connection)


def asked(question: str, **more: Any) -> tuple[socket.socket | None, dict[str, Any]]:
    """Ask what ``rtrain up`` has started, if it has, and return the connection and the answer.

    Raises:
        ClosedError: It has ended.
        OSError: It has ended without clearing its socket away, does not answer, or is another account's.
    """
    path = socket_path()
    if path is None or not path.is_socket():
        return None, {}
    if path.lstat().st_uid != os.geteuid():
        raise PermissionError(f"{path} is another account's")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(path))
        send(connection, {"question": question, "facts": facts(), **more})
        return connection, receive(connection)
    except BaseException:
        connection.close()
        raise


def _followed(connection: socket.socket) -> int | None:
    connection.settimeout(None)
    for number in heard(PASSED_ON):  # SIGINT too, though a shell ignores it for a script's `command &`
        signal.signal(number, lambda number, _: _pass_on(connection, number))
    try:
        send_streams(connection, list(STREAMS))
        answer = receive(connection)
    except (ClosedError, OSError):
        say("error: what `rtrain up` keeps ready has ended before the command did", err=True)
        return 1
    if "refused" in answer:
        _say(answer["refused"])
        return None
    return int(answer["code"])


def _pass_on(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # it has ended just now
        send(connection, {"signal": number})


def _say(text: str) -> None:
    say(f"note: what `rtrain up` keeps ready is not used: {text}", err=True)
