"""Tokens and trained tokenizers on disk, below ``rtrain/tokens`` in the user's cache; see ``made_once``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tokenizers
import transformers
from numpy.lib import format as npy

from rtrain.datasets.on_disk.made_once import made_once, not_written

log = logging.getLogger(__name__)

Arrays = Mapping[str, np.ndarray]


class Texts(Protocol):
    """Texts, some at a time."""

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield (rows,) of dtype object, a text or a list of words each; the same ones each time."""

    @property
    def fingerprint(self) -> str | None:
        """What differs from that of all other texts; None where only reading them tells."""


LEAST_CHARACTERS = 1_000_000
"""Shorter texts are tokenized in about a second."""
VERSION = 2
"""Of what is kept; raise it with every change of what tokens are made of the same texts."""


def cached(texts: Texts, how: Mapping[str, Any], make: Callable[[], Iterable[Arrays]]) -> Arrays:
    """Return what ``make`` makes of texts: from the disk, memory-mapped, if some process has made it before.

    Short texts are not kept. Processes that ask for the same thing at the same time wait for the first one. If the disk
    is full or read-only, each makes it itself, in memory; but not of texts that stay on disk.

    Args:
        texts: Of which it is made.
        how: All that decides the result in addition to the texts, as JSON can hold it.
        make: Yields arrays by name, some rows at a time; they are joined.

    Raises:
        DatasetError: The texts stay on disk, and it can't be written there.
    """
    content = texts.fingerprint or _content(texts)
    if content is None:
        return _joined(make())
    versions = [VERSION, transformers.__version__, tokenizers.__version__]
    name = sha256(json.dumps([versions, how, content], sort_keys=True).encode()).hexdigest()[:32]
    try:
        return _read(made_once("tokens", name, lambda folder: _write(folder, make())))
    except OSError as error:
        if texts.fingerprint is not None:
            raise not_written("tokens", error) from error
        log.warning("tokens are not kept for the next run: %s", error)
        return _joined(make())


def _joined(made: Iterable[Arrays]) -> Arrays:
    parts = list(made)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _content(texts: Texts) -> str | None:
    """Return a hash of texts; None if they are short."""
    digest, num_characters = sha256(), 0
    for rows in texts:
        counts = np.asarray([-1 if isinstance(text, str) else len(text) for text in rows], np.int64)
        flat = [one for text in rows for one in ([text] if isinstance(text, str) else text)]
        sizes = np.asarray([len(one) for one in flat], np.int64)
        num_characters += int(sizes.sum())
        digest.update(counts.tobytes())
        digest.update(sizes.tobytes())
        digest.update("".join(flat).encode("utf-8", "surrogatepass"))
    return digest.hexdigest() if num_characters >= LEAST_CHARACTERS else None


def _read(folder: Path) -> Arrays:
    return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in folder.glob("*.npy")}


def _write(folder: Path, made: Iterable[Arrays]) -> None:
    """Write arrays, which are never in memory as a whole."""
    with ExitStack() as files:
        arrays: dict[str, GrowingFile] = {}
        for part in made:
            for name, values in part.items():
                if name not in arrays:
                    arrays[name] = files.enter_context(GrowingFile(folder / f"{name}.npy", values.dtype))
                arrays[name].append(values)


class GrowingFile:
    """A .npy file of one dimension, to which values are added; their number stands in its head when it is closed."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self._file, self._dtype, self._count = path.open("wb"), dtype, 0

    def __enter__(self) -> GrowingFile:
        self._write_head()
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_head()

    def append(self, values: np.ndarray) -> None:
        """Add values at the end."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._count += len(values)

    def _write_head(self) -> None:
        # NumPy leaves room in it for a larger number, for this purpose.
        shape = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._count,)}
        npy.write_array_header_1_0(self._file, shape)
