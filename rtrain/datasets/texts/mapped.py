"""Texts that stay in Arrow files, which the operating system maps into memory, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from rtrain.datasets.base import Columns, Dataset, ResidentSplit, Split, objects
from rtrain.datasets.on_disk.arrow_column import ArrowColumn
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.load import texts_dataset
from rtrain.datasets.texts.read import Texts


@dataclass(frozen=True)
class TextFiles:
    """A column of texts in Arrow files (the streaming format)."""

    column: ArrowColumn
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
        splits[name] = MappedTexts(part.column, split.columns["x"], y, key)
    info = replace(dataset.info, name=source, memory="stream", fingerprint=whole)
    return replace(dataset, info=info, splits=splits)


@dataclass
class MappedTexts(MappedSplit):
    """Rows of a column of texts."""

    texts: ArrowColumn
    rows: np.ndarray
    """(rows,) which rows of the files."""
    y: np.ndarray | None
    """(rows,) their targets; None: the texts themselves."""
    fingerprint: str
    """Differs between splits that differ."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.rows)

    def x(self, rows: np.ndarray) -> np.ndarray:
        """Return these rows of the split: (rows,) of dtype object, a str each."""
        return objects(self.texts.values(self.rows[rows]))

    def columns(self, rows: np.ndarray) -> Columns:
        """Return these rows of the split with their targets."""
        x = self.x(rows)
        return {"x": x, "y": x if self.y is None else self.y[rows]}
