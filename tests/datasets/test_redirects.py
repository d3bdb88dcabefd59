"""A server that redirects gets the password of a data URL for itself alone, and leads to http and https alone."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.client import HTTPMessage
from io import BytesIO
from urllib.error import URLError
from urllib.request import Request

import pytest

from rtrain.datasets.remote import _Redirects, fetch
from rtrain.errors import DatasetError


class Site:
    """A server that answers every path, or redirects from those in ``leads``."""

    def __init__(self) -> None:
        self.leads: dict[str, str] = {}
        self.asked: list[tuple[str, str | None]] = []
        """Paths, with the ``Authorization`` that came along."""
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, self.headers["Authorization"]))
                content = b"a,y\n1,2\n"
                self.send_response(302 if self.path in site.leads else 200)
                if self.path in site.leads:
                    self.send_header("Location", site.leads[self.path])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def sites(tmp_path, monkeypatch) -> Iterator[tuple[Site, Site]]:
    """The server of the URL, and another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    both = (Site(), Site())
    threads = [threading.Thread(target=site.server.serve_forever, args=(0.01,)) for site in both]
    for thread in threads:
        thread.start()
    yield both
    for site, thread in zip(both, threads, strict=True):
        site.server.shutdown()
        site.server.server_close()
        thread.join()


def test_a_password_goes_to_the_server_of_the_url_and_to_no_other(sites):
    here, there = sites
    here.leads = {"/a.csv": "/b.csv", "/b.csv": f"http://{there.place}/c.csv"}
    assert fetch(f"http://me:pass@{here.place}/a.csv", "dataset.path").read_text() == "a,y\n1,2\n"
    own = "Basic bWU6cGFzcw=="
    assert here.asked == [("/a.csv", own), ("/b.csv", own)]
    assert there.asked == [("/c.csv", None)]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://{there}/x", "data:text/plain,x", "FILE:///etc/passwd"])
def test_a_redirect_to_another_scheme_is_refused(sites, target):
    here, there = sites
    here.leads = {"/a.csv": target.format(there=there.place)}
    with pytest.raises(DatasetError, match=r"dataset\.path"):
        fetch(f"http://{here.place}/a.csv", "dataset.path")
    assert not there.asked


@pytest.mark.parametrize(
    ("before", "after", "passes"),
    [("http", "http", True), ("http", "https", True), ("https", "https", True), ("https", "http", False)]
    + [(scheme, "ftp", False) for scheme in ("http", "https")],
)
def test_a_redirect_never_leaves_encryption_nor_http(before, after, passes):
    request, answer = Request(f"{before}://here/a.csv"), HTTPMessage()
    with nullcontext() if passes else pytest.raises(URLError, match=f"redirects from {before} to {after}"):
        found = _Redirects().redirect_request(request, BytesIO(), 302, "Found", answer, f"{after}://there/a.csv")
        assert found is not None
        assert found.full_url == f"{after}://there/a.csv"
