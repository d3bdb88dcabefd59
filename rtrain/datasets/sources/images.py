"""Image files in a folder per class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import MemoryConf, RowsConf
from rtrain.errors import DatasetError

PIECE_ROWS = 64
"""Images that are read at once while streaming."""
STATISTICS_ROWS = 2_000
"""Images of a streamed train split that ``normalize: true`` looks at."""


def _check_channels(value: int) -> int:
    if value not in (1, 3):
        raise ValueError("must be 1 or 3")
    return value


@dataclass(kw_only=True)
class ImagesConf(RowsConf, MemoryConf):
    """A folder per class, or folders train, val and test that hold one per class. Files of other kinds are ignored."""

    path: str
    """Folder of the class folders, or of train, val and test."""

    image_size: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)] | None = None
    """[height, width] that all images are resized to; null: the size of the first one."""

    channels: Annotated[int, AfterValidator(_check_channels), WithJsonSchema({"enum": [1, 3]})] = 3
    """3: red, green and blue; 1: grey."""


class Images(Source):
    """Image files in a folder per class, of any format that Pillow reads; in memory or streamed."""

    Conf = ImagesConf

    def load(self, conf: ImagesConf) -> Dataset:
        """Read, or open for streaming, the images below ``path``."""
        from rtrain.datasets.files import existing_path
        from rtrain.datasets.image_source import load_images

        folder = existing_path(conf.path)
        if not folder.is_dir():
            raise DatasetError(f"dataset.path: {conf.path} is a file; images lie in a folder per class.")
        return load_images(class_folders(folder), conf)


def class_folders(folder: Path) -> dict[str, dict[str, Path]]:
    """Return the class folders by split and class.

    Raises:
        DatasetError: There is none, or a split has a class that ``train`` has not.
    """
    from rtrain.datasets.files import SPLIT_NAMES

    children = _folders(folder)
    splits = {SPLIT_NAMES[name]: _folders(path) for name, path in children.items() if name in SPLIT_NAMES}
    if not (splits.get("train") and set(children) <= set(SPLIT_NAMES)):
        splits = {"train": children}
    if len(splits["train"]) < 2:
        found = ", ".join(splits["train"]) or "none"
        message = f"dataset.path: {folder} needs a folder for each of two or more classes; found: {found}."
        raise DatasetError(message, "Lay the images out as <path>/<class>/<image> or <path>/train/<class>/<image>.")
    for split, classes in splits.items():
        _check_classes(split, classes, splits["train"], folder)
    return splits


def _folders(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")}


def _check_classes(split: str, classes: Mapping[str, Path], train: Mapping[str, Path], folder: Path) -> None:
    unknown = sorted(set(classes) - set(train))
    if unknown:
        raise DatasetError(
            f"{folder}: split '{split}' has a class folder '{unknown[0]}' that train has not.",
            f"The classes of train are: {', '.join(list(train)[:12])}{', ...' if len(train) > 12 else ''}",
        )
