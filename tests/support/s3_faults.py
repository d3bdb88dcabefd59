"""A way to the S3 server that breaks as told: errors, slowness, connections that are cut or refused."""

from __future__ import annotations

import http.client
import http.server
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

CODES = {403: "AccessDenied", 404: "NoSuchBucket", 500: "InternalError", 503: "SlowDown"}


@dataclass
class Fault:
    """What happens to the next requests of a kind."""

    status: int | None = None
    """Answer this instead of asking the server; None: ask it."""
    wait_seconds: float = 0
    """Wait before answering."""
    cut: bool = False
    """Close the connection in the middle of what is sent, and let the server hear nothing of it."""
    times: float = float("inf")
    """How many requests it happens to."""
    what: str = ""
    """A pattern of the requests, such as ``PUT .*manifest``."""


class FaultyS3:
    """A proxy on a port of its own. Signatures hold, as the server sees the address that the client asked."""

    def __init__(self, target: str) -> None:
        self.faults: list[Fault] = []
        self.asked: list[str] = []
        """The requests so far, such as ``PUT /bucket/name``."""
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """What clients take for the server."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self.stopping = threading.Event()
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from here on, and break those that there are."""
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def fault_of(self, request: str) -> Fault | None:
        """Note a request, and return what is to happen to it."""
        with self._lock:
            self.asked.append(request)
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.what, request):
                    fault.times -= 1
                    return fault
        return None

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, bytes]:
        """Ask the server, and return status, headers and content of its answer."""
        connection = http.client.HTTPConnection(self._target, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body, encode_chunked=False)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FaultyS3

    def setup(self) -> None:
        super().setup()
        self.owner.connections.add(self.connection)

    def finish(self) -> None:
        self.owner.connections.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with suppress(
            OSError, ValueError, http.client.HTTPException
        ):  # the other side is gone, or is made to believe it of this
            super().handle()

    def _answer(self) -> None:
        fault = self.owner.fault_of(f"{self.command} {self.path}") or Fault()
        if self.headers.get("Expect") == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        body = self._body()
        if fault.cut or self.owner.stopping.wait(fault.wait_seconds):  # what waits is lost with the way
            self.close_connection = True
            return
        if fault.status is None:
            headers = {name: value for name, value in self.headers.items() if name != "Expect"}
            status, answered, content = self.owner.forward(self.command, self.path, headers, body)
        else:
            code = CODES[fault.status]
            status, answered = fault.status, [("Content-Type", "application/xml")]
            content = f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode()
        self._send(status, answered, content)

    def _body(self) -> bytes:
        """Return what was sent, as it came: with the frames of chunks, where the client sends such."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while True:
            line = self.rfile.readline()
            chunk = self.rfile.read(int(line, 16) + 2)
            body += line + chunk
            if int(line, 16) == 0:
                return body

    def _send(self, status: int, headers: Any, content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length")
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer

    def handle_expect_100(self) -> bool:
        return True

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def faulty(target: str) -> Iterator[FaultyS3]:
    """Stand before the server at ``target`` while the block runs."""
    proxy = FaultyS3(target)
    try:
        yield proxy
    finally:
        proxy.stop()
