"""Texts that stay in Arrow files, which the operating system maps into memory, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rtrain.datasets.base import Batch, Columns, Dataset, EpochPlan, ResidentSplit, Split, objects, share_of, step_rows
from rtrain.datasets.files import files_fingerprint
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.load import texts_dataset
from rtrain.datasets.texts.read import Texts, check_texts
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CHUNK_ROWS = 1_000
"""Rows that are in memory at a time where all are read."""


@dataclass(frozen=True)
class TextFiles:
    """A column of texts in Arrow files (the streaming format), and the other columns that are looked at."""

    files: tuple[str, ...]
    num_rows: int
    others: pa.Table
    """The label, and columns that decide the split."""


def load_mapped_texts(source: str, parts: Mapping[str, TextFiles], conf: TextConf, reason: str) -> Dataset:
    """Return the dataset of the texts of a column per split; labels are in memory, the texts are not.

    Raises:
        DatasetError: A text is missing, or a column is unusable; names the row.
    """
    import numpy as np

    texts: dict[str, list[Texts]] = {}
    for name, part in parts.items():
        where = f"{conf.path} ({name})"
        check_texts(mapped_column(part.files, conf.text), conf.text, where)
        kept = {key: part.others[key] for key in part.others.column_names if key != conf.label}
        labels = None if conf.label is None else part.others[conf.label].combine_chunks()
        texts[name] = [Texts(where, np.arange(part.num_rows), labels, kept)]
    dataset = texts_dataset(texts, conf, reason)
    files = files_fingerprint(Path(file) for part in parts.values() for file in part.files)
    whole = sha256(f"{dataset.info.fingerprint} {files}".encode()).hexdigest()
    splits: dict[str, Split] = {}
    for name, split in dataset.splits.items():
        assert isinstance(split, ResidentSplit), "the numbers of its rows"
        y = None if dataset.info.task == "language-modeling" else split.columns["y"]
        of = parts.get(name, parts["train"]).files
        splits[name] = MappedTexts(of, conf.text, split.columns["x"], y, f"{whole} {name}")
    info = replace(dataset.info, name=source, memory="stream", fingerprint=whole)
    return replace(dataset, info=info, splits=splits)


def mapped_column(files: Sequence[str], column: str) -> pa.ChunkedArray:
    """Return a column of Arrow files, which is read where it is looked at.

    Raises:
        DatasetError: A file is not there, or can't be read.
    """
    import pyarrow as pa

    parts = []
    for file in files:
        try:
            parts.append(pa.ipc.open_stream(pa.memory_map(file)).read_all().select([column]))
        except (OSError, pa.ArrowException) as error:
            message = f"{file} can't be mapped into memory: {error}"
            hint = "Each machine needs the file, under this name; or use dataset.memory=resident."
            raise DatasetError(message, hint) from error
    return pa.concat_tables(parts)[column]


@dataclass
class MappedTexts(Split):
    """Rows of Arrow files, in the order of a ``ResidentSplit``; pickled without them: workers need the files."""

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

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_chunks"}

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

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass; only its own rows are read."""
        for rows, num_global in step_rows(self.num_rows, plan):
            x = self.x(rows)
            yield Batch(x, x if self.y is None else self.y[rows], num_global)

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield one contiguous part, some rows at a time."""
        import numpy as np

        low, high = share_of(self.num_rows, rank, world_size)
        for start in range(low, max(high, low + 1), CHUNK_ROWS):
            rows = np.arange(start, min(start + CHUNK_ROWS, high))
            x = self.x(rows)
            yield {"x": x, "y": x if self.y is None else self.y[rows]}
