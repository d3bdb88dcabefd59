"""A folder that a URL names, in an object store or on a disk: files are put there whole, read, listed and deleted."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Protocol, cast

from rtrain.runs.filesystem.files import write_chunks
from rtrain.runs.filesystem.plain_files import bounded, check_kind, make_inside, open_inside, parse_json
from rtrain.storage.stores import disk_path, open_store, shown_url

CHUNK_BYTES = 16 << 20
"""Bytes per read of a file, and per request of a large upload."""
READS = 5
TIMEOUT_SECONDS = 15.0
"""How long a store may be silent in the middle of a request, which is then tried once more."""


class Folder(Protocol):
    """Files by their names below a URL. A store's errors are raised unchanged."""

    url: str
    """As it may be shown: without user, password and options."""

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file under a path below the folder; a reader sees the old one or the new one."""

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it from its beginning.

        Raises:
            FileNotFoundError: There is none of that name.
        """

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the bytes of every file below a part of the folder, by the names in the folder itself."""

    def folders(self) -> list[str]:
        """Return the names of the folders right below."""

    def delete(self, name: str) -> None:
        """Delete a file, or everything below a name; missing names are ignored."""


def open_folder(url: str, *parts: str) -> Folder:
    """Return the folder below a URL; nothing is asked of the store yet, or next to nothing."""
    if url.partition("://")[0].lower() == "file":
        return DiskFolder(disk_path(url).joinpath(*parts))
    store, path = open_store(url, TIMEOUT_SECONDS)
    return StoreFolder(store, "/".join((path, *parts)), "/".join((shown_url(url).rstrip("/"), *parts)))


def chunks_of(stream: IO[bytes], length: int | None = None) -> Iterator[bytes]:
    """Yield what a stream holds, at most ``length`` bytes of it."""
    left = sys.maxsize if length is None else length
    while chunk := stream.read(min(left, CHUNK_BYTES)):
        left -= len(chunk)
        yield chunk


def _write(out: IO[bytes], chunks: Iterator[bytes]) -> BaseException | None:
    """Write chunks; return what they raise, as an object that is closed is complete for pyarrow, whatever happened."""
    while True:
        try:
            chunk = next(chunks, None)
        except BaseException as error:
            return error
        if chunk is None:
            return None
        out.write(chunk)


def read(folder: Folder, name: str) -> bytes:
    """Return the content of a small file.

    Raises:
        FileNotFoundError: There is none of that name.
        ValueError: It is too large.
    """
    with folder.open(name) as stream:
        return bounded(stream)


def read_json(folder: Folder, name: str) -> dict[str, Any]:
    """Return the content of a small JSON file, which may be replaced meanwhile.

    Raises:
        FileNotFoundError: There is none of that name.
        ValueError: It is not JSON, or not a mapping.
    """
    for left in reversed(range(READS)):
        try:
            found = parse_json(read(folder, name))
            if isinstance(found, dict):
                return found
            raise ValueError(f"{name} is not a mapping")
        except ValueError:  # a store is asked for the length first, and then for the content, which is another by now
            if not left:
                raise
    raise AssertionError


class StoreFolder:
    """A folder of an object store: an object appears when its last byte is there."""

    def __init__(self, store: Any, path: str, url: str) -> None:
        self._store, self._path, self.url = store, path, url

    def below(self, name: str) -> Folder:
        """Return a folder of the same store."""
        return StoreFolder(self._store, f"{self._path}/{name}", f"{self.url}/{name}")

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Upload it, in several requests if it is large; nothing is left of one whose chunks break off."""
        from rtrain.storage.pyarrow_store import PyarrowStore

        chunks = iter(chunks)
        first = next(chunks, b"")  # an error of a small file comes before anything is replaced
        place = self._place(name)
        if not isinstance(self._store, PyarrowStore):  # those need no folders
            self._store.makedirs(place.rpartition("/")[0], exist_ok=True)
        with self._store.open(place, "wb") as out:
            out.write(first)
            broken = _write(out, chunks)
        if broken is not None:
            with suppress(OSError):
                self._store.rm(place)
            raise broken

    def open(self, name: str) -> BinaryIO:
        """Open an object."""
        stream: BinaryIO = self._store.open(self._place(name), "rb")
        return stream

    def sizes(self, below: str = "") -> dict[str, int]:
        """List the objects, a thousand with each request."""
        self._store.invalidate_cache()
        try:
            found = self._store.find(self._place(below), detail=True)
        except FileNotFoundError:
            return {}
        start = len(self._path.lstrip("/")) + 1
        return {info["name"].lstrip("/")[start:]: info["size"] for info in found.values()}

    def folders(self) -> list[str]:
        """List what stands between this folder and the next slash."""
        self._store.invalidate_cache()
        try:
            found = self._store.ls(self._path, detail=True)
        except FileNotFoundError:
            return []
        return [info["name"].rstrip("/").rpartition("/")[2] for info in found if info["type"] == "directory"]

    def delete(self, name: str) -> None:
        """Delete an object, or all below a name."""
        try:
            self._store.rm(self._place(name), recursive=True)
        except FileNotFoundError:
            return

    def _place(self, name: str) -> str:
        return f"{self._path}/{name}".rstrip("/")


class WatchedFolder:
    """A folder that reports each upload: a file, or a part of a large one that got further than before.

    The report may raise an exception: then the rest is not sent.
    """

    def __init__(self, folder: Folder, moved: Callable[[], None]) -> None:
        self._folder, self._moved, self.url = folder, moved, folder.url
        self._reached: dict[str, int] = {}
        self.open, self.sizes, self.folders, self.below = folder.open, folder.sizes, folder.folders, folder.below

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file."""
        self._folder.put(name, self._watched(name, chunks))
        self._reached.pop(name, None)
        self._moved()

    def delete(self, name: str) -> None:
        """Delete."""
        self._folder.delete(name)
        self._moved()

    def _watched(self, name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
        done = 0
        for chunk in chunks:
            yield chunk
            done += len(chunk)
            # Less than a whole chunk may be waiting still to be sent with the next one.
            if len(chunk) == CHUNK_BYTES and done > self._reached.get(name, 0):
                self._reached[name] = done
                self._moved()


class DiskFolder:
    """A folder that this machine reaches by a path, say on a disk of the network. No link in it is followed."""

    def __init__(self, path: Path) -> None:
        self._path, self.url = path, f"file://{path}"

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return DiskFolder(self._path / name)

    def exists(self) -> bool:
        """Tell whether the folder is there."""
        return self._path.is_dir()

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write under a hidden name, sync, rename."""
        make_inside(self._path, name.rpartition("/")[0])
        write_chunks(self._path / name, chunks)

    def open(self, name: str) -> BinaryIO:
        """Open a file."""
        return cast("BinaryIO", open_inside(self._path, name))

    def sizes(self, below: str = "") -> dict[str, int]:
        """Walk through the folder, without what is deleted meanwhile; links count as files that can't be opened."""
        self._check_way(below)
        found = {}
        for root, folders, names in os.walk(self._path / below):
            links = (name for name in folders if Path(root, name).is_symlink())
            for path in (Path(root, name) for name in (*names, *links)):
                with suppress(FileNotFoundError):
                    found[path.relative_to(self._path).as_posix()] = path.lstat().st_size
        return found

    def folders(self) -> list[str]:
        """List the folder."""
        if not self._path.exists():
            return []
        return [path.name for path in self._path.iterdir() if path.is_dir() and not path.is_symlink()]

    def delete(self, name: str) -> None:
        """Delete a file or a folder."""
        self._check_way(name.rpartition("/")[0])
        place = self._path / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def _check_way(self, name: str) -> None:
        path = self._path
        for part in PurePosixPath(name).parts:
            path = path / part
            check_kind(path, stat.S_IFDIR)
