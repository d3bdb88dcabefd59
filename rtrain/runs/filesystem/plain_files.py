"""Open files in a folder that another account may have filled: through no link, without waiting, and within bounds."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import IO, Any

from rtrain.errors import ForbiddenFileError, StrangeFileError

MAX_BYTES = 64 << 20
"""The largest file of JSON or YAML that is read; a sweep of 100,000 trials stays below."""
MAX_DEPTH = 100
"""How deeply JSON may be nested."""
OWN_FILES = (".lock", "manifest.json", "config.yaml", "events.jsonl", "labels.json", "code.diff", "packages.txt")
OF_RESUMES = "*-resume-*"
"""What resumes by other code write."""
OWN_FOLDERS = (".hydra", "checkpoints", "loggers", "logs")
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def is_plain_name(name: object, *, nested: bool = False) -> bool:
    """Return whether a name that was read from a file names something in a folder, or below it if ``nested``."""
    if not isinstance(name, str) or "\\" in name or "\0" in name:
        return False
    parts = name.split("/")
    return (nested or len(parts) == 1) and not {"", ".", ".."} & set(parts)


def open_inside(root: Path, name: str, mode: str = "rb", **how: Any) -> IO[Any]:
    """Open a regular file below a folder.

    Args:
        root: The folder. Links that lead to it are the user's own; below it none is followed.
        name: Relative path of the file.
        mode: As in ``open``.
        how: ``encoding`` and the like, as in ``open``.

    Raises:
        StrangeFileError: A link, a folder, a pipe, a socket or a device stands in its place or on the way there.
        ForbiddenFileError: It is to be read, and this account may not.
    """
    *folders, last = PurePosixPath(name).parts

    def opener(_: str, flags: int) -> int:
        with _folder(root, folders) as folder:
            descriptor = os.open(last, flags | _PLAIN, 0o666, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError
        return descriptor

    try:
        return open(root / name, mode, opener=opener, **how)  # Path.open takes no opener
    except OSError as error:
        _check_way(root, [*folders, last])
        if isinstance(error, PermissionError) and mode in ("r", "rb"):
            raise forbidden(root / name) from error
        raise


def forbidden(path: Path) -> ForbiddenFileError:
    """Return the error that this account may not read a file, or enter a folder on the way to it."""
    way = ((one, os.X_OK, "+x") for one in reversed(path.absolute().parents))
    closed, right = next(((one, right) for one, need, right in way if not os.access(one, need)), (path, "+r"))
    owner = f"Its owner can allow that: chmod {right} {quote(str(closed))}"
    if closed == path:
        return ForbiddenFileError(f"{path} may not be read by this account.", owner)
    return ForbiddenFileError(f"{path} may not be read by this account: {closed} is closed to it.", owner)


@contextmanager
def _folder(root: Path, parts: list[str]) -> Iterator[int]:
    """Open a folder below another one, each part of the way by the one before it."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            outer, descriptor = descriptor, os.open(part, os.O_RDONLY | os.O_DIRECTORY | _PLAIN, dir_fd=descriptor)
            os.close(outer)
        yield descriptor
    finally:
        os.close(descriptor)


def _check_way(root: Path, parts: list[str]) -> None:
    for number in range(1, len(parts) + 1):
        check_kind(root.joinpath(*parts[:number]), stat.S_IFREG if number == len(parts) else stat.S_IFDIR)


def make_inside(root: Path, name: str) -> None:
    """Make a folder below another one, and those between; none of them may be a link.

    Raises:
        StrangeFileError: Something else stands in the place of one.
    """
    root.mkdir(parents=True, exist_ok=True)
    path = root
    for part in PurePosixPath(name).parts:
        path = path / part
        check_kind(path, stat.S_IFDIR)
        path.mkdir(exist_ok=True)


def check_kind(path: Path, *kinds: int) -> None:
    """Refuse what is of another kind than expected; what does not exist is none.

    Args:
        path: The file; a link is not followed.
        kinds: Which ones are right, ``stat.S_IFREG`` say.

    Raises:
        StrangeFileError: Names the path and what it is.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_IFMT(mode) not in kinds:
        raise StrangeFileError(f"{path} is {described(mode)}, not {_NAMES[kinds[0]]}.", "Replace it, or remove it.")


_NAMES = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def described(mode: int) -> str:
    """Return what kind of file a mode is of, in words."""
    return _NAMES.get(stat.S_IFMT(mode), "of an unknown kind")


def check_run_dir(run_dir: Path) -> None:
    """Refuse a run directory in which a link, a pipe or the like stands where a run writes.

    Raises:
        StrangeFileError: Names the first one.
    """
    for problem in strange_entries(run_dir):
        raise problem


def strange_entries(run_dir: Path) -> Iterator[StrangeFileError]:
    """Yield what stands in a run directory in the place of its files and folders."""
    inner = {
        ".hydra": (stat.S_IFREG,),
        "checkpoints": (stat.S_IFDIR, stat.S_IFREG),
        "loggers": (stat.S_IFREG,),
        "logs": (stat.S_IFREG, stat.S_IFDIR),
    }
    checks: list[tuple[Path, tuple[int, ...]]] = [(run_dir / name, (stat.S_IFREG,)) for name in OWN_FILES]
    checks += [(path, (stat.S_IFREG,)) for path in run_dir.glob(OF_RESUMES)]
    for name in OWN_FOLDERS:
        folder = run_dir / name
        checks.append((folder, (stat.S_IFDIR,)))
        if folder.is_dir() and not folder.is_symlink():
            checks += [(path, inner[name]) for path in sorted(folder.iterdir())]
    for path, kinds in checks:
        try:
            check_kind(path, *kinds)
        except StrangeFileError as problem:
            yield problem


def strange_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield what in a folder, however deep, does not belong there, and why: pipes, links that lead out of it."""
    top = Path(os.path.realpath(folder))
    for root, folders, names in os.walk(top):
        for path in sorted(Path(root, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            place = Path(os.path.realpath(path))
            if stat.S_ISLNK(mode) and not (top in place.parents and place.exists()):
                yield folder / path.relative_to(top), "it is a link to a file outside its folder, or to none"
            elif not (place.is_file() or place.is_dir()):
                yield folder / path.relative_to(top), f"it is {described(mode)}"


def read_text(root: Path, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a file below a folder.

    Raises:
        OSError: It can't be read; of kind ``StrangeFileError`` if it is not a regular file.
        ValueError: It is too large, or not UTF-8.
    """
    return _bytes(root, name, max_bytes).decode("utf-8")


def read_json(root: Path, name: str) -> Any:
    """Return what a JSON file below a folder holds.

    Raises:
        OSError: It can't be read; of kind ``StrangeFileError`` if it is not a regular file.
        ValueError: It is too large, nested too deeply, or no JSON.
    """
    return parse_json(_bytes(root, name, MAX_BYTES))


def _bytes(root: Path, name: str, max_bytes: int) -> bytes:
    with open_inside(root, name) as file:
        return bounded(file, max_bytes)


def bounded(stream: Any, max_bytes: int = MAX_BYTES) -> bytes:
    """Return what a stream holds.

    Raises:
        ValueError: It holds more than ``max_bytes``.
    """
    content: bytes = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes:,} bytes")
    return content


def parse_json(content: bytes | str) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: It is not JSON, or nested too deeply.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _is_deep(value):
        raise ValueError("it is nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        nodes = [one for one in level if isinstance(one, dict | list)]
        if not nodes:
            return False
        level = [inner for one in nodes for inner in (one.values() if isinstance(one, dict) else one)]
    return True
