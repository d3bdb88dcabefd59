"""A Ray cluster that somebody else started on this machine with ``ray start``, and whose processes may be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RAY = str(Path(sys.executable).with_name("ray"))
SERVERS = {"raylet": "raylet/raylet", "gcs": "gcs/gcs_server"}
"""Part of their command lines, by name."""


@contextmanager
def started_cluster(num_cpus: int = 4) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the address of a cluster, and the process ids of its servers; its processes end with the block."""
    from ray._common.utils import reset_ray_address

    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:  # sockets need a short path
        options = [f"--num-cpus={num_cpus}", f"--port={_free_port()}", f"--temp-dir={folder}"]
        options += ["--include-dashboard=false", "--object-store-memory=100000000"]
        try:
            subprocess.run([RAY, "start", "--head", *options], check=True, capture_output=True, timeout=120)
            pids = {name: next(pid for pid, line in _of(folder) if file in line) for name, file in SERVERS.items()}
            yield f"127.0.0.1:{options[1].partition('=')[2]}", pids
        finally:
            for pid, _ in _of(folder):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            reset_ray_address()  # the file names it to all on this machine


def _of(folder: str) -> list[tuple[int, str]]:
    """Return the process ids of a cluster, and the command line of each."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if folder in line:
                found.append((int(file.parent.name), line))
    return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
