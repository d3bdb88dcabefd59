"""Image files in a folder per class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.schema import one_of
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import MemoryConf, PixelsConf, RowsConf
from rtrain.errors import DatasetError

PIECE_ROWS = 64
"""Images that are read at once while streaming."""
STATISTICS_ROWS = 2_000
"""Images of a streamed train split that ``normalize: true`` looks at."""

SHUFFLED = Need(
    met=lambda way: False,
    otherwise="all images of an epoch are shuffled, streamed ones too",
    instead="Leave it out",
    keys=("dataset.type",),
)


@dataclass(kw_only=True)
class ImagesConf(RowsConf, MemoryConf, PixelsConf):
    """A folder per class, or folders train, val and test that hold one per class. Files of other kinds are ignored."""

    needs: ClassVar[Rules] = (SHUFFLED.of("num_shuffle_rows"),)

    num_shuffle_rows: Annotated[int, Field(ge=1)] = 10_000
    """Has no effect on images: all of them are shuffled in each epoch, streamed ones too."""

    path: str
    """Folder of the class folders, or of train, val and test."""

    on_error: Annotated[str, *one_of("raise", "skip")] = "raise"
    """A file that is no image or a broken one: stop with its name, or skip it and count it in the manifest; to find
    them, skip reads all images once more at the start."""


class Images(Source):
    """Image files in a folder per class, of any format that Pillow reads; in memory or streamed."""

    Conf = ImagesConf

    def load(self, conf: ImagesConf) -> Dataset:
        """Read, or open for streaming, the images below ``path``."""
        from rtrain.datasets.class_folders import class_folders
        from rtrain.datasets.files import existing_path
        from rtrain.datasets.images.load import load_images

        folder = existing_path(conf.path)
        if not folder.is_dir():
            raise DatasetError(f"dataset.path: {conf.path} is a file; images lie in a folder per class.")
        return load_images(class_folders(folder), conf)

    def open_rows(self, conf: ImagesConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all images at ``path``: a file, a folder of any depth or a glob. The files' names are kept."""
        from rtrain.datasets.images.predict_rows import open_image_rows

        return open_image_rows(conf, encoding)
