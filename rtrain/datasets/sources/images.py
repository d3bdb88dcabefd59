"""Image files in a folder per class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.images.conf import ImagesConf
from rtrain.errors import DatasetError


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
            raise DatasetError(f"dataset.path: {conf.path} is a file; images must be in one folder per class.")
        return load_images(class_folders(folder, conf.split), conf)

    def open_rows(self, conf: ImagesConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all images at ``path``: a file, a folder of any depth or a glob. The files' names are kept."""
        from rtrain.datasets.images.predict_rows import open_image_rows

        return open_image_rows(conf, encoding)
