"""Arrays in .npz and .npy files."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rtrain.config.did_you_mean import there_are
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, RawChunk, RowReader, Source
from rtrain.datasets.conf import ArraysConf, TablePath
from rtrain.datasets.splitting.left_out import read_for, to_read
from rtrain.datasets.without_effect import check_kind
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays, Names

UNREADABLE = (
    *(ValueError, OSError, EOFError, MemoryError, KeyError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, struct.error),
)
"""What NumPy and zipfile raise for broken, encrypted and strangely packed files."""
STATISTICS_ROWS = 100_000
"""Rows of a mapped train split that ``normalize: true`` looks at."""


@dataclass(kw_only=True)
class NumpyConf(ArraysConf):
    """Arrays by name: those of a .npz file, or the .npy files of a folder, which may be larger than memory.

    The names are ``x`` and ``y``; or ``x_train``, ``y_train``, ``x_val``, ``x_test``, ... (``train_x`` works too) for
    splits. Images are uint8, (rows, height, width), with channels last or first.
    """

    path: TablePath
    """A .npz file or a folder of .npy files, or {train: ..., test: ...}."""

    x: str = "x"
    """Name of the inputs, (rows, ...) numbers."""

    y: str = "y"
    """Name of the targets, (rows,)."""

    memory: Annotated[str, *one_of("auto", "resident", "stream")] = "auto"
    """``resident`` holds all rows in memory, ``stream`` maps .npy files; auto: by size against free memory."""


class Numpy(Source):
    """NumPy arrays: a .npz file or a folder of .npy files, in memory or mapped from disk."""

    Conf = NumpyConf

    def load(self, conf: NumpyConf) -> Dataset:
        """Read, or map, the arrays at ``path``."""
        from rtrain.datasets.arrays.load import Arrays, Names, feature_names, load_arrays
        from rtrain.datasets.memory import choose_memory

        found = _by_split(conf)
        parts = {
            split: Arrays(where=f"{one.path}", x=one.read(one.x), y=one.read(one.y)) for split, one in found.items()
        }
        x = parts["train"].x
        size = sum(part.x.nbytes for part in parts.values())
        choice = choose_memory(conf.memory, size)
        names = Names(source="numpy", label=conf.y, features=feature_names(x.shape[1]) if x.ndim == 2 else ())
        if choice.memory == "resident" or not all(one.path.is_dir() for one in found.values()):
            if conf.memory == "stream":
                message = "dataset.memory=stream: arrays in a .npz file can't be mapped."
                raise DatasetError(message, "Save them as .npy files in a folder: numpy.save('folder/x.npy', x).")
            resident = {split: replace(part, x=_held(part.x)) for split, part in parts.items()}
            return load_arrays(resident, names, conf, conf.task, choice.reason)
        return _mapped(found, parts, names, conf, choice.reason)

    def open_rows(self, conf: NumpyConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all arrays at ``path``; the targets may be missing."""
        check_kind("input_shape" in encoding, "arrays of numbers")
        return NumpyRows(tuple(_by_split(conf, targets_needed=False).values()), encoding)


@dataclass(frozen=True)
class Pair:
    """Where the inputs and targets of a split are."""

    path: Path
    """A .npz file, or the folder of the .npy files."""
    x: str
    y: str
    """Empty where there are no targets."""

    def read(self, name: str) -> np.ndarray:
        """Return an array; one in a .npy file is mapped, not read.

        Raises:
            DatasetError: It can't be read, or holds Python objects.
        """
        import numpy as np

        try:
            if self.path.is_dir():
                return np.load(self.path / f"{name}.npy", mmap_mode="r")  # type: ignore[no-any-return]
            with self.path.open("rb") as file, np.load(file) as arrays:
                return arrays[name]  # type: ignore[no-any-return]
        except UNREADABLE as error:
            message = f"{self.path}: '{name}' can't be read ({error})."
            raise DatasetError(message, "Pickled objects are never loaded; save arrays of numbers or text.") from error


def _by_split(conf: NumpyConf, targets_needed: bool = True) -> dict[str, Pair]:
    paths: Mapping[str, Any] = conf.path if isinstance(conf.path, Mapping) else {"": conf.path}
    if targets_needed and "train" in paths:
        paths = to_read(paths, conf.split)
    found: dict[str, Pair] = {}
    for split, path in paths.items():
        key = f"dataset.path.{split}" if split else "dataset.path"
        with read_for(split or "train"):
            found |= _pairs(path, key, split, conf, targets_needed)
    return to_read(found, conf.split) if targets_needed else found


def _pairs(text: str, key: str, split: str, conf: NumpyConf, targets_needed: bool) -> dict[str, Pair]:
    """Return the splits of a file or folder: one, if it has plain ``x``, else those that its names tell."""
    from rtrain.datasets.files import SPLIT_NAMES, existing_path

    path = existing_path(text, key)
    there = sorted(file.stem for file in path.glob("*.npy")) if path.is_dir() else _names_in(path)
    ways = {split or "train": [(conf.x, conf.y)]}
    if not split:
        for word, name in SPLIT_NAMES.items():
            both = (f"{conf.x}_{word}", f"{conf.y}_{word}"), (f"{word}_{conf.x}", f"{word}_{conf.y}")
            ways.setdefault(name, []).extend(both)
    found: dict[str, Pair] = {}
    for name, pairs in ways.items():
        for x, y in pairs:
            if x in there and (y in there or not targets_needed):
                found.setdefault(name, Pair(path, x, y if y in there else ""))
    if (split or "train") not in found and not (found and not targets_needed):
        message = f"{path}: there are no arrays '{conf.x}' and '{conf.y}', or '{conf.x}_train' and '{conf.y}_train'."
        raise DatasetError(message, f"{there_are(there or ['none'])}\nName them: dataset.x=... dataset.y=...")
    return found


def _names_in(path: Path) -> list[str]:
    import numpy as np

    if path.suffix == ".npy":
        raise DatasetError(f"{path}: inputs and targets are two files.", f"Give their folder: {path.parent}")
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            return sorted(arrays.files)
    except (*UNREADABLE, AttributeError) as error:
        raise DatasetError(f"{path}: can't be read ({error}).", "Check that it is a complete .npz file.") from error


def _held(x: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.array(x) if isinstance(x, np.memmap) else x


def _mapped(
    found: Mapping[str, Pair], parts: Mapping[str, Arrays], names: Names, conf: NumpyConf, reason: str
) -> Dataset:
    from rtrain.datasets.arrays.load import check_shapes, inputs
    from rtrain.datasets.arrays.mapped import OnDisk, mapped_dataset
    from rtrain.datasets.arrays.memmap import MappedArrays

    check_shapes({split: inputs(replace(part, x=part.x[:1])) for split, part in parts.items()}, parts)
    paths = {split: one.path / f"{one.x}.npy" for split, one in found.items()}
    on_disk = OnDisk(
        make=lambda split, rows, y: MappedArrays(str(paths[split]), rows, y),
        files=[*paths.values()],
        reason=reason,
        statistics_rows=STATISTICS_ROWS,
    )
    return mapped_dataset(parts, on_disk, names, conf, conf.task)


@dataclass(frozen=True)
class NumpyRows:
    """Reads arrays to predict; pickled to the processes that predict."""

    pieces: tuple[Pair, ...]
    encoding: Mapping[str, Any]

    def read(self, piece: Pair, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a split, some at a time."""
        from rtrain.datasets.arrays.load import Arrays
        from rtrain.datasets.arrays.predict_rows import array_chunks

        y = piece.read(piece.y) if piece.y and with_labels else None
        return array_chunks(Arrays(where=str(piece.path), x=piece.read(piece.x), y=y), self.encoding, with_labels)
