"""What client, server and seat send each other: JSON behind its length; and file descriptors."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

STREAMS = (0, 1, 2)
"""Descriptors that a client sends when its command is taken."""
LENGTH_BYTES = 4
STARTING, READY, IN_USE = "starting", "ready", "in use"
"""States that the server answers with."""
TAKEN = 3
"""Exit code of a server where another one listens already."""


class ClosedError(Exception):
    """The other side has ended."""


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message.

    Raises:
        OSError: The other side has ended, or takes nothing.
    """
    content = json.dumps(message).encode()
    connection.sendall(len(content).to_bytes(LENGTH_BYTES) + content)


def receive(connection: socket.socket) -> dict[str, Any]:
    """Return the next message.

    Raises:
        ClosedError: There is none, as the other side has ended.
        OSError: There is none in time.
    """
    length = int.from_bytes(_bytes(connection, LENGTH_BYTES))
    message: dict[str, Any] = json.loads(_bytes(connection, length))
    return message


def _bytes(connection: socket.socket, number: int) -> bytes:
    received = b""
    while len(received) < number:
        part = connection.recv(number - len(received))
        if not part:
            raise ClosedError
        received += part
    return received


def send_streams(connection: socket.socket, streams: list[int]) -> None:
    """Send file descriptors of this process."""
    socket.send_fds(connection, [b"s"], streams)


def receive_streams(connection: socket.socket) -> list[int]:
    """Return file descriptors that the other side has sent.

    Raises:
        ClosedError: It has not.
    """
    _, streams, _, _ = socket.recv_fds(connection, 1, len(STREAMS))
    if len(streams) != len(STREAMS):
        for one in streams:
            os.close(one)
        raise ClosedError
    return streams
