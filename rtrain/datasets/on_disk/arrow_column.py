"""A column of Arrow files, which the operating system maps into memory, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rtrain.errors import DatasetError


@dataclass(frozen=True)
class ArrowColumn:
    """Values that are read where they are asked for; pickled without what was opened."""

    files: tuple[str, ...]
    """In the streaming format."""
    name: str
    held: tuple[pa.Array, ...] = ()
    """The values, where they are in no file."""

    def __getstate__(self) -> dict[str, object]:
        return {"files": self.files, "name": self.name, "held": self.held}

    @cached_property
    def _chunks(self) -> tuple[np.ndarray, Sequence[pa.Array]]:
        """The pieces of the column, and the first row of each."""
        chunks = self.held or mapped_column(self.files, self.name).chunks
        return np.cumsum([0, *map(len, chunks)]), chunks

    def values(self, rows: np.ndarray) -> list[Any]:
        """Return the values in these rows of all files, as Python has them.

        Raises:
            DatasetError: A file is missing, or can't be read.
        """
        borders, chunks = self._chunks
        places = np.searchsorted(borders, rows, side="right") - 1
        inside = rows - borders[places]
        return [chunks[at][row].as_py() for at, row in zip(places.tolist(), inside.tolist(), strict=True)]


def mapped_column(files: Sequence[str], column: str) -> pa.ChunkedArray:
    """Return a column of Arrow files, which is read where it is looked at.

    Raises:
        DatasetError: A file is missing, or can't be read.
    """
    return pa.concat_tables([mapped_table(file).select([column]) for file in files])[column]


def mapped_table(file: str) -> pa.Table:
    """Return an Arrow file, of which nothing but the places of its columns is read; see ``mapped_column``."""
    try:
        return pa.ipc.open_stream(pa.memory_map(file)).read_all()
    except (OSError, pa.ArrowException) as error:
        message = f"{file} can't be mapped into memory: {error}"
        hint = "Each machine needs the file, under this name; or use dataset.memory=resident."
        raise DatasetError(message, hint) from error
