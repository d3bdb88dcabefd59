"""Files behind URLs, copied once into a local cache: http(s) by itself, object stores by pyarrow or fsspec."""

from __future__ import annotations

import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from rtrain.errors import DatasetError

BUILT_INTO_PYARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs")
GLOB_SIGNS = "*?["
TIMEOUT_SECONDS = 60


def is_url(text: str) -> bool:
    """Return whether ``text`` is a URL and not a local path."""
    return "://" in text


def fetch(url: str, key: str, endings: Sequence[str] = ()) -> Path:
    """Return the local copy of the file, folder or glob that ``url`` names, below ``~/.cache/rtrain/data``.

    A copy is made again when size or time of change (or the ETag) differs at the source. It appears complete or not at
    all.

    Args:
        url: http(s) names a file; others may be folders and globs.
        key: The config key that holds it, for messages.
        endings: Of the files that are copied from a folder; empty: all.

    Raises:
        DatasetError: There is nothing of that name, it is refused, or a package is missing.
    """
    scheme = url.partition("://")[0].lower()
    if scheme == "file":
        return Path(unquote(urlsplit(url).path))
    with _errors_named(url, key):
        return _fetch_http(url) if scheme in ("http", "https") else _fetch_store(url, scheme, key, endings)


def shown(url: str) -> str:
    """Return a URL without user, password and signature."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def cache_dir() -> Path:
    """Return the folder of the copies: ``$XDG_CACHE_HOME`` or ``~/.cache``, and ``rtrain/data`` below it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rtrain" / "data"


def _fetch_http(url: str) -> Path:
    with urlopen(_request(url), timeout=TIMEOUT_SECONDS) as response:
        headers = response.headers
        version = [headers.get(name, "") for name in ("ETag", "Last-Modified", "Content-Length")]
        name = PurePosixPath(unquote(urlsplit(url).path)).name or "index"
        file = _place([url, *version]) / name
        if not file.exists():
            length = headers.get("Content-Length")
            _write(file, lambda to: _copied(response, to, None if length is None else int(length)))
    return file


def _request(url: str) -> Request:
    """Return the request for a URL; a user and password in it go into the header that they belong to."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    headers = {"User-Agent": "rtrain"}
    if user:
        headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    return Request(urlunsplit((parts.scheme, host, parts.path, parts.query, "")), headers=headers)


def _copied(source: Any, to: IO[bytes], length: int | None) -> None:
    shutil.copyfileobj(source, to, 1 << 20)
    if length is not None and to.tell() != length:
        raise OSError(f"the connection ended after {to.tell()} of {length} bytes")


def _fetch_store(url: str, scheme: str, key: str, endings: Sequence[str]) -> Path:
    store, path = _store(url, scheme)
    found = _listed(store, path, endings)
    if not found:
        kind = f" {' or '.join(endings[:2])}" if endings else ""
        raise DatasetError(f"{key}: {shown(url)} names no{kind} file.", "Check bucket, folder and name.")
    is_file = list(found) == [path]
    root = str(PurePosixPath(path).parent) if is_file else _fixed(path)
    folder = _place([shown(url), *(f"{name} {version}" for name, version in found.items())])
    files = {name: folder / PurePosixPath(name).relative_to(root) for name in found}
    for name, file in files.items():
        if not file.exists():
            with store.open(name, "rb") as stream:
                _write(file, partial(shutil.copyfileobj, stream))
    return files[path] if is_file else folder


def _store(url: str, scheme: str) -> tuple[Any, str]:
    """Return the file system of a URL, with fsspec's methods, and the path there."""
    import fsspec

    if scheme in BUILT_INTO_PYARROW:
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow import fs

        found, path = fs.FileSystem.from_uri(url)
        return ArrowFSWrapper(found), path.rstrip("/")
    store, path = fsspec.core.url_to_fs(url)
    return store, path.rstrip("/")


def _listed(store: Any, path: str, endings: Sequence[str]) -> dict[str, str]:
    """Return the files at a path or glob, or below a folder, with what tells their versions apart."""
    if any(sign in path for sign in GLOB_SIGNS):
        found = store.glob(path, detail=True)
    elif store.isdir(path):
        every = store.find(path, detail=True)
        found = {name: info for name, info in every.items() if not endings or name.lower().endswith(tuple(endings))}
    else:
        found = {path: store.info(path)}
    files = {name: info for name, info in found.items() if info["type"] == "file"}
    return {name: _version(files[name]) for name in sorted(files)}


def _version(info: Any) -> str:
    times = (
        info.get(name) for name in ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
    )
    return f"{info.get('size')} {next((str(one) for one in times if one is not None), '')}"


def _fixed(path: str) -> str:
    """Return the part of a path before its first glob sign."""
    parts = PurePosixPath(path).parts
    kept = next((at for at, part in enumerate(parts) if any(sign in part for sign in GLOB_SIGNS)), len(parts))
    return str(PurePosixPath(*parts[:kept]))


def _place(identity: Sequence[str]) -> Path:
    return cache_dir() / sha256("\0".join(identity).encode()).hexdigest()[:24]


def _write(file: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file under another name first; its time is fixed, for its folder's name tells the version."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".part-", delete=False) as part:
        try:
            fill(part)
        except BaseException:
            Path(part.name).unlink()
            raise
    os.utime(part.name, (0, 0))
    Path(part.name).replace(file)


@contextmanager
def _errors_named(url: str, key: str) -> Iterator[None]:
    place = f"{key}: {shown(url)}"
    try:
        yield
    except HTTPError as error:
        hint = "It wants credentials: use a signed URL." if error.code in (401, 403) else "Check the URL."
        raise DatasetError(f"{place}: the server answers {error.code} ({error.reason}).", hint) from error
    except URLError as error:
        raise DatasetError(f"{place} can't be reached ({error.reason}).", "Check host and network.") from error
    except ImportError as error:
        raise DatasetError(f"{place} needs a package that is not installed: {error}") from error
    except FileNotFoundError as error:
        raise DatasetError(f"{place} does not exist.", "Check bucket, folder and name.") from error
    except PermissionError as error:
        raise DatasetError(f"{place} is refused: {error}", "Check the credentials in the environment.") from error
    except (OSError, ValueError) as error:
        raise DatasetError(f"{place} can't be read: {error}", "Check the URL, and the credentials.") from error
