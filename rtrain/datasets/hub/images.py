"""Images of Hugging Face data sets: in memory, or read from the Arrow files in each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL.Image import Image

from rtrain.datasets.arrays.load import Arrays, Names, load_arrays, targets
from rtrain.datasets.arrays.mapped import OnDisk, mapped_dataset
from rtrain.datasets.base import Columns, Dataset, RawChunk
from rtrain.datasets.hub.files import arrow_column, why_resident
from rtrain.datasets.images.conf import ORIGINAL, PIECE_ROWS, STATISTICS_ROWS
from rtrain.datasets.images.decoded import DecodedSplit, ImageReader
from rtrain.datasets.images.load import image_memory
from rtrain.datasets.images.pixels import named
from rtrain.datasets.images.predict_rows import trained_form
from rtrain.datasets.labels import Labels
from rtrain.datasets.on_disk.arrow_column import ArrowColumn
from rtrain.datasets.on_disk.mapped_split import CHUNK_BYTES, MappedSplit
from rtrain.errors import DatasetError


@dataclass(frozen=True)
class HubImages:
    """A column of encoded images."""

    column: ArrowColumn
    kind: Any
    """The ``datasets.Image`` that decodes them."""
    where: str
    """The data set, for messages."""

    def open(self, row: int) -> Image:
        """Return an image as the data set shows it.

        Raises:
            DatasetError: There is none, or it can't be read; names the row.
        """
        where, found = self.place(row), self.column.values(np.asarray([row]))[0]
        if found is None:
            raise DatasetError(f"{where} has no image.", "Remove such rows.")
        with named(where):
            return self.kind.decode_example(found)  # type: ignore[no-any-return]

    def pixels(self, row: int, reader: ImageReader) -> np.ndarray:
        """Return an image, (channels, height, width) uint8."""
        return reader.of_image(self.open(row), self.place(row))

    def all_pixels(self, rows: Sequence[int], reader: ImageReader) -> np.ndarray:
        """Return these images together, decoded by a thread per core."""
        return reader.all_of(partial(self.pixels, reader=reader), rows)

    def place(self, row: int) -> str:
        """Return what messages call a row."""
        return f"{self.where}: row {row + 1} of '{self.column.name}'"


@dataclass
class MappedImages(DecodedSplit, MappedSplit):
    """Images that stay in Arrow files, encoded."""

    images: HubImages
    reader: ImageReader
    rows: np.ndarray
    """(rows,) which rows of the files."""
    y: np.ndarray
    """(rows,) their targets."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.rows)

    @property
    def chunk_rows(self) -> int:
        """As many rows as take ``CHUNK_BYTES``."""
        return max(1, CHUNK_BYTES // self.reader.row_bytes)

    def image(self, row: int) -> np.ndarray:
        """Return an image of the split, (channels, height, width) uint8."""
        return self.images.pixels(int(self.rows[row]), self.reader)

    def targets(self, rows: np.ndarray) -> np.ndarray:
        """Return the targets of some rows."""
        found: np.ndarray = self.y[rows]
        return found

    def columns(self, rows: np.ndarray) -> Columns:
        """Return these rows of the split with their targets."""
        return {"x": self.images.all_pixels(self.rows[rows].tolist(), self.reader), "y": self.targets(rows)}


@dataclass(frozen=True)
class HubImageRows:
    """Reads images to predict; a piece is the number of a part, its first row and the row to end before."""

    parts: Sequence[tuple[HubImages, pa.Table]]
    """Images with the other columns, the label among them if there is one."""
    pieces: Sequence[tuple[int, int, int]]
    reader: ImageReader
    label: str
    encoding: Mapping[str, Any]

    def read(self, piece: tuple[int, int, int], with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a piece."""
        number, first, end = piece
        images, table = self.parts[number]
        x, y = images.all_pixels(range(first, end), self.reader), None
        kept = {name: table[name][first:end] for name in table.column_names}
        if with_labels and self.label in kept:
            known = Labels.stored(self.label, self.encoding)
            y = targets(Arrays(where=images.where, x=x, y=kept[self.label].to_numpy()), known, first)
        yield RawChunk(x, y, kept)


def load_hub_images(parts: Mapping[str, Any], column: str, labels: Mapping[str, np.ndarray], conf: Any) -> Dataset:
    """Return the dataset of the images of each split, in memory or on disk.

    Args:
        parts: The splits.
        column: Of the images.
        labels: Of each split, (rows,).
        conf: The conf of the source.

    Raises:
        DatasetError: An image is missing or can't be read, or the labels can't be learned from.
    """
    images = {split: _images(part, column, conf.path) for split, part in parts.items()}
    reader = _reader(images["train"], conf.image_size, conf.channels)
    why = why_resident({split: one.column.files for split, one in images.items()}, conf.path)
    choice = image_memory(conf, sum(map(len, labels.values())) * reader.row_bytes, why)
    load = _resident if choice.memory == "resident" else _mapped
    return load(images, reader, labels, conf, choice.reason)


def _resident(
    images: Mapping[str, HubImages], reader: ImageReader, labels: Mapping[str, np.ndarray], conf: Any, reason: str
) -> Dataset:
    arrays = {
        split: Arrays(where=f"{conf.path} ({split})", x=one.all_pixels(range(len(y)), reader), y=y)
        for (split, one), y in zip(images.items(), labels.values(), strict=True)
    }
    return load_arrays(arrays, Names(source="huggingface", label=conf.label), conf, conf.task, reason)


def _mapped(
    images: Mapping[str, HubImages], reader: ImageReader, labels: Mapping[str, np.ndarray], conf: Any, reason: str
) -> Dataset:
    on_disk = OnDisk(
        make=lambda split, rows, y: MappedImages(images[split], reader, rows, y),
        files=[Path(file) for one in images.values() for file in one.column.files],
        reason=reason,
        statistics_rows=STATISTICS_ROWS,
    )
    arrays = {split: Arrays(where=f"{conf.path} ({split})", x=y, y=y) for split, y in labels.items()}
    dataset = mapped_dataset(arrays, on_disk, Names(source="huggingface", label=conf.label), conf, conf.task)
    return dataset if reader.resizes else replace(dataset, encoding={**dataset.encoding, "image_size": ORIGINAL})


def open_hub_images(
    parts: Mapping[str, Any], column: str, others: Mapping[str, pa.Table], conf: Any, encoding: Mapping[str, Any]
) -> HubImageRows:
    """Open the images of all splits to predict them.

    Args:
        parts: The splits.
        column: Of the images.
        others: The other columns of each split; labels may be missing.
        conf: The conf of the source.
        encoding: ``Dataset.encoding`` of training.

    Raises:
        DatasetError: The model was trained on other rows than images.
    """
    channels, size = trained_form(encoding)
    images = [_images(part, column, conf.path) for part in parts.values()]
    height, width = size or (1, 1)
    reader = ImageReader(height, width, channels, size is not None)
    pieces = [
        (number, first, min(first + PIECE_ROWS, len(part)))
        for number, part in enumerate(parts.values())
        for first in range(0, len(part), PIECE_ROWS)
    ]
    every = [*zip(images, others.values(), strict=True)]
    return HubImageRows(every, pieces, reader, conf.label, encoding)


def _images(part: Any, column: str, path: str) -> HubImages:
    return HubImages(arrow_column(part, column), replace(part.features[column], decode=True), path)


def _reader(images: HubImages, size: Any, channels: int) -> ImageReader:
    """Return a reader for images of the size that the config says, or of that of the first one."""
    if size not in (None, ORIGINAL):
        return ImageReader(size[0], size[1], channels)
    width, height = images.open(0).size
    return ImageReader(height, width, channels, size != ORIGINAL)
