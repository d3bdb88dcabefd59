"""MNIST and its look-alikes from their IDX files."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rtrain.datasets.base import Columns, Dataset, Source
from rtrain.datasets.conf import RowsConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

PREFIXES = {"train": "train", "test": "t10k"}
FOLDERS = ("", "MNIST/raw", "raw")


@dataclass(kw_only=True)
class MnistConf(RowsConf):
    """60,000 grey images of 28 x 28 pixels in 10 classes, and 10,000 more for the test split."""

    path: str = "data/mnist"
    """Folder that holds ``train-images-idx3-ubyte`` and its three siblings, with ``.gz`` or without, or MNIST/raw."""


class Mnist(Source):
    """MNIST, Fashion-MNIST and the like from their four IDX files, (1, 28, 28) uint8."""

    Conf = MnistConf

    def load(self, conf: MnistConf) -> Dataset:
        """Read the IDX files; the t10k files are the test split, and ``val`` is a share of the train files."""
        from rtrain.datasets.in_memory import Content, resident_dataset
        from rtrain.datasets.memory import readable
        from rtrain.datasets.splitting.shares import split_parts

        folder = _folder(conf.path)
        parts = {split: _read_split(folder, prefix) for split, prefix in PREFIXES.items()}
        splits = split_parts(parts, conf, stratify=True)
        num_classes = 1 + max(int(part["y"].max(initial=0)) for part in parts.values())
        content = Content(
            name="mnist",
            task="classification",
            class_names=tuple(map(str, range(num_classes))),
            memory_reason=f"{readable(sum(part['x'].nbytes for part in parts.values()))}, always kept in memory",
        )
        return resident_dataset(splits, content, conf)


def _folder(path: str) -> Path:
    from rtrain.datasets.files import existing_path

    folder = existing_path(path)
    for below in FOLDERS:
        if _find(folder / below, "train-images-idx3-ubyte"):
            return folder / below
    names = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte"
    raise DatasetError(f"dataset.path: {path} contains no file train-images-idx3-ubyte[.gz].", f"Put {names} there.")


def _find(folder: Path, name: str) -> Path | None:
    for file in (folder / name, folder / f"{name}.gz", folder / name.replace("-idx", ".idx")):
        if file.is_file():
            return file
    return None


def _read_split(folder: Path, prefix: str) -> Columns:
    images = _read(folder, f"{prefix}-images-idx3-ubyte", 3)
    labels = _read(folder, f"{prefix}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise DatasetError(f"{folder}: {prefix} has {len(images)} images but {len(labels)} labels.")
    return {"x": images[:, None], "y": labels.astype("int64")}


def _read(folder: Path, name: str, num_dimensions: int) -> np.ndarray:
    file = _find(folder, name)
    if file is None:
        raise DatasetError(
            f"{folder} contains no file {name}[.gz].", "All four MNIST files must be in the same folder."
        )
    return read_idx(file, num_dimensions)


def read_idx(file: Path, num_dimensions: int) -> np.ndarray:
    """Return the bytes that an IDX file holds, in its shape.

    The format is described at the end of http://yann.lecun.com/exdb/mnist.

    Raises:
        DatasetError: The file is not an IDX file of bytes, or it is truncated.
    """
    import numpy as np

    content = _unzipped(file) if file.suffix == ".gz" else file.read_bytes()
    header = 4 + 4 * num_dimensions
    magic = 0x0800 + num_dimensions
    found = int.from_bytes(content[:4], "big")
    if len(content) < header or found != magic:
        raise DatasetError(f"{file}: not an IDX file of bytes (magic number {found:#010x}, expected {magic:#010x}).")
    shape = struct.unpack(f">{num_dimensions}I", content[4:header])
    values = np.frombuffer(content, np.uint8, offset=header)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        expected = " x ".join(map(str, shape))
        raise DatasetError(
            f"{file}: contains {values.size} bytes of data, but its header says {expected}.", "Download it again."
        )
    return values.reshape(shape)


def _unzipped(file: Path) -> bytes:
    try:
        return zlib.decompress(file.read_bytes(), wbits=31)
    except zlib.error as error:
        raise DatasetError(f"{file}: broken gzip file ({error}).", "Download it again.") from error
