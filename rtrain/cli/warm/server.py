"""The process that ``rtrain up`` leaves behind: it has imported what a run needs, and forks a seat for each."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rtrain.cli.warm.facts import difference
from rtrain.cli.warm.imported import Imported
from rtrain.cli.warm.messages import (
    IN_USE,
    READY,
    STARTING,
    ClosedError,
    receive,
    receive_streams,
    send,
    send_streams,
)

ASK_SECONDS = 5.0
"""How long a client may take to say what it wants."""


class Server:
    """Waits for commands, and for the end of the one that runs.

    Args:
        listener: Where clients connect.
        here: Facts of this process, as it was started.
        options: What ``rtrain up`` was given.
        run: What a seat does, with its connection to this process.
    """

    def __init__(
        self,
        listener: socket.socket,
        here: dict[str, Any],
        options: dict[str, Any],
        run: Callable[[socket.socket], int],
    ) -> None:
        self._listener, self._here, self._options, self._run = listener, here, options, run
        self._idle_seconds = 60 * options["idle_minutes"]
        self._imported = Imported()
        self._seat, self._to_seat = 0, socket.socket()
        self._client: socket.socket | None = None
        self._used, self._runs = time.monotonic(), 0
        self._is_ready = self._is_busy = self._leaves = False
        self._ended, self._wakeup = socket.socketpair()
        self._ended.setblocking(False)
        self._wakeup.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)

    def serve(self) -> Callable[[], int] | None:
        """Answer until no command has come for long enough; return what is to run, in a fork of this process."""
        work = self._fork()
        while work is None and not (self._leaves and not self._is_busy):
            ready = self._wait()
            if not ready:
                self._leaves = True
            if self._to_seat in ready:
                self._read_seat()
            if self._client in ready:
                self._read_client()
            if self._ended in ready and self._is_over() and not self._leaves:
                work = self._fork()
            if work is None and self._listener in ready:
                self._answer()
        if work is None:
            self._end()
        return work

    def _wait(self) -> set[Any]:
        left = max(0.0, self._used + self._idle_seconds - time.monotonic())
        with selectors.DefaultSelector() as selector:
            for one in (self._listener, self._ended, self._client, None if self._is_ready else self._to_seat):
                if one is not None:
                    selector.register(one, selectors.EVENT_READ)
            return {key.fileobj for key, _ in selector.select(left if self._is_ready and not self._is_busy else None)}

    def _read_seat(self) -> None:
        try:
            receive(self._to_seat)
        except (ClosedError, OSError):  # SIGCHLD announces its end
            return
        self._is_ready = True
        if not self._is_busy:
            self._used = time.monotonic()

    def _read_client(self) -> None:
        """Pass a signal on to the command; end the command of a client that is gone."""
        assert self._client is not None
        try:
            number = receive(self._client)["signal"]
        except (ClosedError, OSError):
            number = signal.SIGTERM
            self._client.close()
            self._client = None
        with suppress(ProcessLookupError):
            os.kill(self._seat, number)

    def _leave(self, *_: Any) -> None:
        self._leaves = True

    def _fork(self) -> Callable[[], int] | None:
        """Make the next seat; return what it does, in the fork."""
        mine, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            for one in filter(None, (mine, self._listener, self._ended, self._wakeup, self._client)):
                one.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return lambda: self._run(theirs)
        theirs.close()
        self._seat, self._to_seat, self._is_ready, self._is_busy = pid, mine, False, False
        return None

    def _is_over(self) -> bool:
        """Take note of the end of the seat, and tell its client."""
        with suppress(BlockingIOError):
            self._ended.recv(4096)
        pid, status = os.waitpid(self._seat, os.WNOHANG)
        if pid == 0:
            return False
        self._leaves = self._leaves or not (self._is_ready or self._is_busy)  # the next one would not start either
        self._used, self._is_busy = time.monotonic(), False
        self._to_seat.close()
        if self._client is not None:
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                send(self._client, {"code": code if code >= 0 else 128 - code})
            self._client.close()
            self._client = None
        return True

    def _answer(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(ASK_SECONDS)
        stays = False
        with suppress(ClosedError, OSError):  # a client that has gone
            stays = self._do(connection, receive(connection))
        if not stays:
            connection.close()

    def _do(self, connection: socket.socket, command: dict[str, Any]) -> bool:
        """Do what a client wants; return whether it stays."""
        if command["question"] != "run":
            self._leaves = self._leaves or command["question"] == "end"
            send(connection, self._status(command))
            return False
        refused = self._refused(command)
        if refused is not None:
            send(connection, {"refused": refused})
            return False
        send(connection, {})
        streams = receive_streams(connection)  # a client that has gone meanwhile does not get this far
        try:
            send_streams(self._to_seat, streams)
            send(self._to_seat, command)
        except OSError:
            send(connection, {"refused": "it has just ended"})
            return False
        finally:
            for stream in streams:
                os.close(stream)
        self._client, self._is_busy, self._runs = connection, True, self._runs + 1
        return True

    def _refused(self, command: dict[str, Any]) -> str | None:
        if self._is_busy:
            return "another run uses it"
        if self._leaves:
            return "it is about to end"
        differs = self._differs(command)
        return None if differs is None else f"{differs}; `rtrain up` renews it"

    def _differs(self, command: dict[str, Any]) -> str | None:
        differs = difference(command["facts"], self._here)
        if differs is None and self._imported.has_changed():
            return "installed packages, or imported files, have changed"
        return differs

    def _status(self, command: dict[str, Any]) -> dict[str, Any]:
        state = IN_USE if self._is_busy else READY if self._is_ready else STARTING
        idle = time.monotonic() - self._used
        about = {"process": os.getpid(), "state": state, "idle": idle, "runs": self._runs}
        return about | {"options": self._options, "differs": self._differs(command)}

    def _end(self) -> None:
        self._listener.close()
        self._to_seat.close()
        with suppress(ChildProcessError):  # it is over
            os.waitpid(self._seat, 0)
