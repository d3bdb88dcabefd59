"""Stands in for the two agents of a Ray node, which take seconds to start and which hardly anything needs.

Ray waits for the ports of both before a node takes tasks, and ends the node when one of them ends. The one for the
dashboard says that it serves nothing, as Ray's own does where Ray was installed without its dashboard. The one for
runtime environments becomes Ray's own at the first request, which the node repeats until it is answered.

Run as a script, without the packages of the environment: ``dashboard`` or ``runtime_env``, and Ray's command.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

POLL_SECONDS = 1.0
"""How often it is checked that the node is still there."""
UNUSED = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
NOT_IN_USE = -1
ENVIRONMENTS = "runtime_env_agent_port"
"""What the files begin with that say where agents listen; behind it stands the node."""


def main(arguments: Sequence[str]) -> None:
    """Tell the node the ports, and wait for the first request, or for the end of the node."""
    (kind, *command), node = arguments, os.getppid()
    options = dict(word.removeprefix("--").split("=", 1) for word in command if "=" in word)
    if kind == "dashboard":
        for name in UNUSED:
            _announce(options, name, NOT_IN_USE)
        listeners = []
    else:
        held, listener = _listening(options["node-ip-address"])
        port = held.getsockname()[1]
        _announce(options, ENVIRONMENTS, port)
        listeners = [listener]
    while os.getppid() == node:
        if select.select(listeners, [], [], POLL_SECONDS)[0]:
            listener.close()
            os.execv(command[0], [*command, f"--runtime-env-agent-port={port}"])


def _announce(options: dict[str, str], name: str, port: int) -> None:
    file = Path(options["session-dir"], f"{name}_{options['node-id']}")
    written = file.with_suffix(".new")
    written.write_text(str(port))
    written.rename(file)


def _listening(host: str) -> tuple[socket.socket, socket.socket]:
    """Return a socket that listens on a free port, and another one that keeps the port when that is closed.

    As long as the second one is open, here or in the program that this process becomes, no other program is given the
    port; who asks for this very one can have it.
    """
    address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    sockets: list[socket.socket] = []
    for _ in range(2):
        one = socket.socket(*address[:3])
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(sockets[0].getsockname() if sockets else address[4])
        sockets.append(one)
    held, listener = sockets
    held.set_inheritable(True)
    listener.listen()
    return held, listener


if __name__ == "__main__":
    main(sys.argv[1:])
