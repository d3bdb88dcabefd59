"""Write files so that a reader finds them whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, TypeVar

from rtrain.errors import RtrainError, RunDirError, StrangeFileError
from rtrain.runs.filesystem.plain_files import open_inside

BLOCK_BYTES = 1 << 20
MANIFEST, SWEEP = "manifest.json", "sweep.json"
"""What makes a folder a run directory, or the folder of a sweep."""
RECORDS = (MANIFEST, SWEEP)
NUM_TRIES, RETRY_SECONDS = 5, 0.05
"""How often a write begins where its folder is moved or deleted meanwhile, and the time in between."""
Written = TypeVar("Written")


@contextmanager
def private_files(private: bool) -> Iterator[None]:
    """Let this account alone read what is written in the block, if ``private``: by this process and those it starts."""
    if not private:
        yield
        return
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def current_umask() -> int:
    """Return the bits that files of this process don't get; for a moment, other threads' are private."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_atomic(path: Path, text: str) -> None:
    """Replace ``path`` by ``text``: a reader, or a machine that loses power, sees the old file or the new one."""
    write_chunks(path, [text.encode()])


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace ``path`` by bytes that come in parts, all of them or none."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(3)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def despite_removal(write: Callable[[], Written]) -> Written:
    """Return what ``write`` returns; it begins again where the run directory is moved or deleted in that very moment.

    Raises:
        FileNotFoundError: The one of the last try.
    """
    for _ in range(NUM_TRIES - 1):
        try:
            return write()
        except FileNotFoundError:
            time.sleep(RETRY_SECONDS)
    return write()


def unshare(folder: Path, name: str) -> None:
    """Give a hard-linked file a separate copy of its content, so that appending leaves the other names unchanged.

    Args:
        folder: The folder.
        name: Relative path of the file, which need not exist.
    """
    try:
        file = open_inside(folder, name)
    except FileNotFoundError:
        return
    with file:
        if os.fstat(file.fileno()).st_nlink > 1:
            write_chunks(folder / name, iter(partial(file.read, BLOCK_BYTES), b""))


@contextmanager
def named_errors(run_dir: Path, hint: str | None = None) -> Iterator[None]:
    """Name the run directory in errors of a block that writes there.

    Args:
        run_dir: The run directory.
        hint: What to do about it; None: how to train all the same.

    Raises:
        RunDirError: The error of the system, and a hint.
    """
    try:
        yield
    except StrangeFileError:
        raise
    except OSError as error:
        raise unwritable(run_dir, error, hint) from error


@contextmanager
def named_output(output: Path) -> Iterator[None]:
    """Name a file for the user, which is no run's, in errors of a block that writes it.

    Raises:
        RtrainError: It can't be written.
    """
    try:
        yield
    except OSError as error:
        raise RtrainError(f"{output} can't be written: {error.strerror or error}.") from error


def unwritable(run_dir: Path, error: OSError, hint: str | None = None) -> RunDirError:
    """Return the error of a run directory that can't be written."""
    if hint is None:
        hint = _how_to_train(run_dir)
    return RunDirError(f"can't write the run directory {run_dir}: {error.strerror or error}.", hint)


def _how_to_train(run_dir: Path) -> str:
    hint = "Choose another folder for runs: run.root_dir=..."
    if (run_dir / MANIFEST).exists():
        again = f"rtrain resume {quote(str(run_dir))}"
        hint = f"When it can be written again: {again}. For new runs, set another run.root_dir."
    return hint


def to_json(value: Any, indent: int | None = None) -> str:
    """Return strict JSON: NaN and infinity, which JSON lacks, become null; what JSON does not know, its text."""
    separators = None if indent else (",", ":")
    return json.dumps(finite(value), indent=indent, separators=separators, default=str, allow_nan=False)


def finite(value: Any, infinities: Mapping[float, str] = MappingProxyType({})) -> Any:
    """Return plain data with None for numbers that JSON lacks, NaN and infinity, at any depth.

    Args:
        value: The data.
        infinities: Texts for infinite numbers, in place of None.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else infinities.get(value)
    if isinstance(value, Mapping):
        return {str(key): finite(one, infinities) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one, infinities) for one in value]
    return value


def sync_directory(path: Path) -> None:
    """Make renames inside ``path`` durable (a no-op where folders can't be synced)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network filesystems refuse; the rename itself is done
        return
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a written file durable."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sha256_of_text(text: str) -> str:
    """Return the hexadecimal sha256 of a text as it is in a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the hexadecimal sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
