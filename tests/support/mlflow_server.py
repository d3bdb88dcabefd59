"""A real MLflow server on SQLite, in processes of its own, that tests stop and start again."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from urllib.error import URLError
from urllib.request import urlopen

from processes import until

START_SECONDS = 180
"""Longest time that a busy machine takes to start one."""


class MlflowServer:
    """A server whose runs lie in a folder, as long as the block lasts."""

    def __init__(self, folder):
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Start it, with the runs that it had before."""
        words = ["--backend-store-uri", f"sqlite:///{self._folder}/mlflow.db", "--port", str(self._port)]
        words += ["--artifacts-destination", str(self._folder / "artifacts"), "--host", "127.0.0.1", "--workers", "1"]
        variables = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        log = self._folder / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *words],
                env=variables, cwd=self._folder, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        assert until(self._answers, START_SECONDS), log.read_text()

    def stop(self):
        """Take it away at once, with all of its processes."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self):
        assert self._process.poll() is None, (self._folder / "server.log").read_text()
        try:
            with urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False
