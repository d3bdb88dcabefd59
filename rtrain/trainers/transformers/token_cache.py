"""Tokens and trained tokenizers on disk: each machine makes them once, for all ranks, trials and later runs.

They lie in ``$XDG_CACHE_HOME`` or ``~/.cache``, below ``rtrain/tokens``: a folder for each result, named by a hash of
all that decides it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import tokenizers
import transformers

from rtrain.datasets.remote import cache_dir

log = logging.getLogger(__name__)

Arrays = Mapping[str, np.ndarray]
Cache = Callable[[np.ndarray, Mapping[str, Any], Callable[[], Arrays]], Arrays]
LEAST_CHARACTERS = 1_000_000
"""Shorter texts are tokenized in about a second."""
MAX_DAYS = 30
"""After so many days without use, tokens are removed."""
VERSION = 1
"""Of what is kept; raise it with every change of what tokens are made of the same texts."""


def cached(texts: np.ndarray, how: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
    """Return what ``make`` makes of texts: from the disk, memory-mapped, if some process has made it before.

    Short texts are not kept. Processes that ask for the same thing at the same time wait for the first one. If the disk
    is full or read-only, each makes it itself.

    Args:
        texts: (rows,) of dtype object, a text or a list of words each.
        how: All that decides the result in addition to the texts, as JSON can hold it.
        make: Returns arrays by name.
    """
    content = _content(texts)
    if content is None:
        return make()
    versions = [VERSION, transformers.__version__, tokenizers.__version__]
    name = sha256(json.dumps([versions, how, content], sort_keys=True).encode()).hexdigest()[:32]
    folder = cache_dir().with_name("tokens") / name
    try:
        lock = _locked(folder.with_suffix(".lock"))
    except OSError as error:
        log.warning("tokens are not kept for the next run: %s", error)
        return make()
    with lock:
        return _read(folder) if folder.is_dir() else _kept(folder, make())


def uncached(texts: np.ndarray, how: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
    """Return what ``make`` returns, for texts that are read once."""
    return make()


def _content(texts: np.ndarray) -> str | None:
    """Return a hash of texts; None if they are short."""
    counts = np.asarray([-1 if isinstance(text, str) else len(text) for text in texts], np.int64)
    flat = [one for text in texts for one in ([text] if isinstance(text, str) else text)]
    sizes = np.asarray([len(one) for one in flat], np.int64)
    if sizes.sum() < LEAST_CHARACTERS:
        return None
    digest = sha256(counts.tobytes())
    digest.update(sizes.tobytes())
    digest.update("".join(flat).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _locked(file: Path) -> IO[str]:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = file.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        lock.close()
        raise
    return lock


def _read(folder: Path) -> Arrays:
    os.utime(folder)
    return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in folder.glob("*.npy")}


def _kept(folder: Path, arrays: Arrays) -> Arrays:
    """Return arrays from the disk, where they are written to; as they are if they can't be."""
    try:
        _write(folder, arrays)
        _remove_unused(folder.parent)
        return _read(folder)
    except OSError as error:
        log.warning("tokens are not kept for the next run: %s", error)
        return arrays


def _write(folder: Path, arrays: Arrays) -> None:
    """Write a folder, which appears complete or not at all."""
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a process that was killed
    temporary.mkdir(mode=0o700)
    try:
        for name, values in arrays.items():
            np.save(temporary / f"{name}.npy", values, allow_pickle=False)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_unused(folder: Path) -> None:
    """Remove what no run has used for a long time; those that use it have opened its files and keep them."""
    oldest = time.time() - MAX_DAYS * 86_400
    for place in folder.iterdir():
        if place.is_dir() and place.stat().st_mtime < oldest:
            shutil.rmtree(place, ignore_errors=True)
            place.with_suffix(".lock").unlink(missing_ok=True)
