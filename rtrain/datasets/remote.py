"""Files behind URLs, copied once into a local cache: http(s) by itself, object stores by pyarrow or fsspec."""

from __future__ import annotations

import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from http.client import HTTPMessage
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rtrain.datasets.missing.near_files import hint_for
from rtrain.errors import DatasetError
from rtrain.storage.stores import disk_path, errors_named, open_store, path_in, refusal, shown_url

VERSION_HEADERS = ("ETag", "Last-Modified", "Content-Length")
GLOB_SIGNS = "*?["
TIMEOUT_SECONDS = 60
CHUNK_BYTES = 16 << 20
"""What one request asks a store for."""
LOOK_SECONDS = 5
"""Longest wait for the names in a folder that lacks one."""
NUM_THREADS = 8
"""Number of files of a store that are copied in parallel."""


def fetch(url: str, key: str, endings: Sequence[str] = (), companions: Sequence[str] = ()) -> Path:
    """Return the local copy of the file or folder that ``url`` names, below ``~/.cache/rtrain/data``.

    A copy is made again when size or time of change (or the ETag) differs at the source. It appears complete or not at
    all.

    Args:
        url: http(s) names a file; others may be folders, and globs, of which the folder before the first sign is
            returned.
        key: The config key that holds it, for messages.
        endings: Of the files that are copied from a folder; empty: all.
        companions: Endings that, appended to each file's name, name other files, which are copied too if they exist.

    Raises:
        DatasetError: The name does not exist, access is denied, or a package is missing.
    """
    scheme = url.partition("://")[0].lower()
    if scheme == "file":
        return disk_path(url)
    if scheme in ("http", "https"):
        with _http_errors_named(url, key):
            return _fetch_http(url, companions)
    with errors_named(url, key, DatasetError):
        return _fetch_store(url, key, endings, companions)


def pattern_in(url: str) -> str:
    """Return the part of a URL from the first folder with a glob sign to the end; empty if it is not a glob."""
    if url.partition("://")[0].lower() in ("file", "http", "https"):
        return ""
    parts = PurePosixPath(path_in(url)).parts
    return "/".join(parts[num_fixed(parts) :])


def is_glob(path: str) -> bool:
    """Return whether a path, or a part of one, has a glob sign."""
    return any(sign in path for sign in GLOB_SIGNS)


def num_fixed(parts: Sequence[str]) -> int:
    """Return how many parts of a path come before the first with a glob sign; all if none has any."""
    return next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))


def cache_dir() -> Path:
    """Return the folder of the copies: ``$XDG_CACHE_HOME`` or ``~/.cache``, and ``rtrain/data`` below it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rtrain" / "data"


def _fetch_http(url: str, companions: Sequence[str]) -> Path:
    with ExitStack() as stack:
        first = stack.enter_context(_ask(_request(url)))
        name = PurePosixPath(unquote(urlsplit(url).path)).name or "index"
        found = {name: first}
        for ending in companions:
            more = _opened_if_there(_request(url, ending))
            if more is not None:
                found[f"{name}{ending}"] = stack.enter_context(more)
        versions = [response.headers.get(header, "") for response in found.values() for header in VERSION_HEADERS]
        folder = _place([url, *found, *versions])
        for file, response in found.items():
            length = response.headers.get("Content-Length")
            _copy(response, folder / file, None if length is None else int(length))
    return folder / name


def _opened_if_there(request: Request) -> Any:
    """Return the answer, or None. A server that does not list its files denies access to missing ones."""
    try:
        return _ask(request)
    except HTTPError as error:
        if error.code in (403, 404, 410):
            return None
        raise


def _request(url: str, ending: str = "") -> Request:
    """Return the request for a URL and an ending of its path; a user and password go into their own header."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    address = urlunsplit((parts.scheme, host, parts.path + ending, parts.query, ""))
    request = Request(address, headers={"User-Agent": "rtrain"})
    if user:
        request.add_unredirected_header("Authorization", f"Basic {b64encode(unquote(user).encode()).decode()}")
    return request


class _Redirects(HTTPRedirectHandler):
    """Follows a server by http and https alone; user and password go to that server alone."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request that follows, or refuse it."""
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.scheme.lower() not in (before.scheme.lower(), "https"):
            raise URLError(f"it redirects from {before.scheme} to {after.scheme}")
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and before.netloc == after.netloc and "Authorization" in req.unredirected_hdrs:
            found.add_unredirected_header("Authorization", req.unredirected_hdrs["Authorization"])
        return found


def _ask(request: Request) -> Any:
    return build_opener(_Redirects).open(request, timeout=TIMEOUT_SECONDS)


def _fetch_store(url: str, key: str, endings: Sequence[str], companions: Sequence[str]) -> Path:
    from rtrain.storage.pyarrow_store import PyarrowStore

    store, path = open_store(url)
    try:
        found = _listed(store, path, endings, companions)
    except FileNotFoundError as error:
        refused = refusal(url, key, error, DatasetError)
        refused.hint = _near_files(store, path, url) or refused.hint
        raise refused from error
    if not found:
        kind = f"{' or '.join(endings[:2])} file" if endings else "file"
        raise DatasetError(f"{key}: there is no {kind} at {shown_url(url)}.", "Check bucket, folder and name.")
    is_file = path in found
    root = str(PurePosixPath(path).parent) if is_file else _fixed(path)
    folder = _place([shown_url(url), *(f"{name} {_version(info)}" for name, info in found.items())])
    places = {name: folder / PurePosixPath(name).relative_to(root) for name in found}

    def copy(name: str) -> None:
        with store.open(name, "rb") as stream:
            _copy(stream, places[name], found[name]["size"])

    missing = [name for name, place in places.items() if not place.exists()]
    threads = ThreadPoolExecutor(NUM_THREADS if isinstance(store, PyarrowStore) else 1)
    try:
        for _ in threads.map(copy, missing):
            pass
    finally:
        threads.shutdown(cancel_futures=True)
    return places[path] if is_file else folder


def _near_files(store: Any, path: str, url: str) -> str | None:
    """Return what the folder of a missing path has instead; None if it does not answer in time."""
    parent, _, name = path.rpartition("/")
    names: list[str] = []

    def ask() -> None:
        with suppress(Exception):  # the first error says enough
            names.extend(PurePosixPath(one).name for one in store.find(parent, maxdepth=1, withdirs=True))

    asking = Thread(target=ask, daemon=True)  # a folder may have millions of files
    asking.start()
    asking.join(LOOK_SECONDS)
    return hint_for(name, names, shown_url(url).rpartition("/")[0]) if names and not asking.is_alive() else None


def _listed(store: Any, path: str, endings: Sequence[str], companions: Sequence[str]) -> dict[str, Any]:
    """Return what is known of the files at a path or glob, or below a folder, in the order of their names."""
    if is_glob(path):
        found = store.glob(path, detail=True)
    elif (info := store.info(path))["type"] == "directory":
        every = store.find(path, detail=True)
        found = {name: info for name, info in every.items() if not endings or name.lower().endswith(tuple(endings))}
    else:
        found = {path: info}
    # A key of a store may hold "..", which would lead its copy out of the folder of the copies.
    found = {name: info for name, info in found.items() if info["type"] == "file" and ".." not in name.split("/")}
    for name in [f"{name}{ending}" for name in found for ending in companions]:
        if name not in found and store.exists(name):
            found[name] = store.info(name)
    return dict(sorted(found.items()))


def _version(info: Any) -> str:
    """Return what tells the versions of a file apart."""
    times = (
        info.get(name) for name in ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
    )
    return f"{info.get('size')} {next((str(one) for one in times if one is not None), '')}"


def _fixed(path: str) -> str:
    """Return the part of a path before its first glob sign."""
    parts = PurePosixPath(path).parts
    return str(PurePosixPath(*parts[: num_fixed(parts)]))


def _place(identity: Sequence[str]) -> Path:
    return cache_dir() / sha256("\0".join(identity).encode()).hexdigest()[:24]


def _copy(source: Any, file: Path, size: int | None) -> None:
    """Copy a stream to a file that does not exist yet, under another name first.

    The file's time is fixed, because its folder's name gives the version.

    Raises:
        OSError: The stream is shorter or longer than ``size`` bytes.
    """
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".part-", delete=False) as part:
        try:
            shutil.copyfileobj(source, part, CHUNK_BYTES)
            if size is not None and part.tell() != size:
                raise OSError(f"the connection ended after {part.tell()} of {size} bytes, or the file was changed")
            part.flush()
            os.fsync(part.fileno())
        except BaseException:
            Path(part.name).unlink()
            raise
    os.utime(part.name, (0, 0))
    Path(part.name).replace(file)


@contextmanager
def _http_errors_named(url: str, key: str) -> Iterator[None]:
    place = f"{key}: {shown_url(url)}"
    try:
        yield
    except HTTPError as error:
        refused, lost = "It requires credentials: use a signed URL.", "Check the URL: it must name one file."
        hint = refused if error.code in (401, 403) else lost
        raise DatasetError(f"{place}: the server returned {error.code} ({error.reason}).", hint) from error
    except URLError as error:
        raise DatasetError(f"{place} can't be reached ({error.reason}).", "Check host and network.") from error
    except (OSError, ValueError) as error:
        raise refusal(url, key, error, DatasetError) from error
