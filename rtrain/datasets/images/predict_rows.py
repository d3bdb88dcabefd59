"""Images to predict, in folders of classes or loose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.datasets.base import RawChunk
from rtrain.datasets.files import existing_path, files_at
from rtrain.datasets.images.conf import ORIGINAL, PIECE_ROWS, ImagesConf
from rtrain.datasets.images.decoded import ImageReader
from rtrain.datasets.images.load import images_below
from rtrain.datasets.images.pixels import image_size
from rtrain.datasets.labels import known_classes, trained_classes
from rtrain.datasets.remote import is_glob
from rtrain.datasets.without_effect import check_kind
from rtrain.errors import DatasetError
from rtrain.storage.stores import is_url


def open_image_rows(conf: ImagesConf, encoding: Mapping[str, Any]) -> ImageRows:
    """Return a reader of the images at ``conf.path``, in the order of their paths."""
    channels, size = trained_form(encoding)
    path = None if is_glob(conf.path) and not is_url(conf.path) else existing_path(conf.path)
    files = images_below(path) if path is not None and path.is_dir() else files_at(conf.path, ())
    if not files:
        raise DatasetError(f"dataset.path: {conf.path} contains no image.")
    names = [str(file) for file in files]
    pieces = [tuple(names[start : start + PIECE_ROWS]) for start in range(0, len(names), PIECE_ROWS)]
    height, width = image_size(names[0], names[0]) if size is None else size
    reader = ImageReader(height, width, channels, size is not None)
    return ImageRows(pieces, reader, trained_classes(encoding))


def trained_form(encoding: Mapping[str, Any]) -> tuple[int, tuple[int, int] | None]:
    """Return the channels, and the height and width, of the images of training, whatever source they came from.

    Args:
        encoding: ``Dataset.encoding`` of training.

    Returns:
        None in place of the size where images keep their own.

    Raises:
        DatasetError: The model was trained on other rows than images.
    """
    shape = tuple(encoding.get("input_shape", ()))
    of_arrays = len(shape) == 3 and encoding.get("dtype") == "uint8"
    check_kind("channels" in encoding or of_arrays, "images")
    channels = shape[0] if of_arrays else encoding["channels"]
    if encoding.get("image_size") == ORIGINAL:
        return channels, None
    height, width = shape[1:] if of_arrays else encoding["image_size"]
    return channels, (height, width)


@dataclass(frozen=True)
class ImageRows:
    """Reads images; a piece is some files. Broken ones are errors: every image gets a prediction."""

    pieces: Sequence[tuple[str, ...]]
    reader: ImageReader
    classes: tuple[str, ...]

    def read(self, piece: tuple[str, ...], with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the images of a piece.

        Raises:
            DatasetError: An image can't be read; or labels are asked for, and one lies in no folder of a class.
        """
        x = self.reader.together(map(self.reader.image, piece), len(piece))
        y = np.array([self._class(file) for file in piece], np.int64) if with_labels else None
        yield RawChunk(x, y, {"file": list(piece)})

    def _class(self, file: str) -> int:
        """Return the class whose folder is the nearest one around a file."""
        for folder in Path(file).parents:
            if folder.name in self.classes:
                return self.classes.index(folder.name)
        raise DatasetError(f"{file} is in no folder of a class: it has no label.", known_classes(self.classes))
