"""Texts that stay in Arrow files, which the operating system maps into memory, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from rtrain.datasets.base import Columns, Dataset, ResidentSplit, Split, objects
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.load import texts_dataset
from rtrain.datasets.texts.read import Texts
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True)
class TextFiles:
    """A column of texts in Arrow files (the streaming format)."""

    files: tuple[str, ...]
    column: str
    texts: Sequence[Texts]
    """The rows of all files by their numbers, with their labels and what decides their split."""
    fingerprint: str
    """Of the files that the user has, as the manifest names them."""
    identity: str
    """Differs where the texts may differ; what is made of them is kept under it."""


def load_mapped_texts(source: str, parts: Mapping[str, TextFiles], conf: TextConf, reason: str) -> Dataset:
    """Return the dataset of the texts of each split; labels are in memory, the texts are not.

    Raises:
        DatasetError: A column is unusable; names the row.
    """
    dataset = texts_dataset({name: part.texts for name, part in parts.items()}, conf, reason)
    of_files = " ".join(part.fingerprint for part in parts.values())
    whole = sha256(f"{dataset.info.fingerprint} {of_files}".encode()).hexdigest()
    splits: dict[str, Split] = {}
    for name, split in dataset.splits.items():
        assert isinstance(split, ResidentSplit), "the numbers of its rows"
        y = None if dataset.info.task == "language-modeling" else split.columns["y"]
        part = parts.get(name, parts["train"])
        key = f"{dataset.info.fingerprint} {part.identity} {name}"
        splits[name] = MappedTexts(part.files, part.column, split.columns["x"], y, key)
    info = replace(dataset.info, name=source, memory="stream", fingerprint=whole)
    return replace(dataset, info=info, splits=splits)


def mapped_column(files: Sequence[str], column: str) -> pa.ChunkedArray:
    """Return a column of Arrow files, which is read where it is looked at.

    Raises:
        DatasetError: A file is missing, or can't be read.
    """
    import pyarrow as pa

    return pa.concat_tables([mapped_table(file).select([column]) for file in files])[column]


def mapped_table(file: str) -> pa.Table:
    """Return an Arrow file, of which nothing but the places of its columns is read; see ``mapped_column``."""
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.memory_map(file)).read_all()
    except (OSError, pa.ArrowException) as error:
        message = f"{file} can't be mapped into memory: {error}"
        hint = "Each machine needs the file, under this name; or use dataset.memory=resident."
        raise DatasetError(message, hint) from error


@dataclass
class MappedTexts(MappedSplit):
    """Rows of Arrow files."""

    files: tuple[str, ...]
    column: str
    rows: np.ndarray
    """(rows,) which rows of the files."""
    y: np.ndarray | None
    """(rows,) their targets; None: the texts themselves."""
    fingerprint: str
    """Differs between splits that differ."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.rows)

    @cached_property
    def _chunks(self) -> tuple[np.ndarray, Sequence[pa.Array]]:
        """The pieces of the column, and the first row of each."""
        import numpy as np

        chunks = mapped_column(self.files, self.column).chunks
        return np.cumsum([0, *map(len, chunks)]), chunks

    def x(self, rows: np.ndarray) -> np.ndarray:
        """Return these rows of the split: (rows,) of dtype object, a str each."""
        import numpy as np

        borders, chunks = self._chunks
        wanted = self.rows[rows]
        places = np.searchsorted(borders, wanted, side="right") - 1
        inside = wanted - borders[places]
        return objects([chunks[at][row].as_py() for at, row in zip(places.tolist(), inside.tolist(), strict=True)])

    def columns(self, rows: np.ndarray) -> Columns:
        """Return these rows of the split with their targets."""
        x = self.x(rows)
        return {"x": x, "y": x if self.y is None else self.y[rows]}
