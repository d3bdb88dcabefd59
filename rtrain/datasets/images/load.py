"""From image files to a dataset, in memory or streamed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from rtrain.datasets.base import Columns, Dataset, DatasetInfo
from rtrain.datasets.files import files_below, files_fingerprint, is_data_file
from rtrain.datasets.images.conf import ORIGINAL, PIECE_ROWS, STATISTICS_ROWS, ImagesConf, OriginalPixelsConf
from rtrain.datasets.images.decoded import DecodedSplit, ImageReader
from rtrain.datasets.images.pixels import image_size
from rtrain.datasets.in_memory import Content, resident_dataset
from rtrain.datasets.mean_std import given_statistics
from rtrain.datasets.memory import MemoryChoice, choose_memory
from rtrain.datasets.splitting.left_out import or_leave_out
from rtrain.datasets.splitting.shares import num_wanted, split_parts
from rtrain.datasets.streamed import RowFilter, StreamSplit, pieces_of
from rtrain.errors import DatasetError

log = logging.getLogger(__name__)

Folders = Mapping[str, Mapping[str, Path]]


def load_images(folders: Folders, conf: ImagesConf) -> Dataset:
    """Return the dataset of the images in ``folders``, by split and class.

    Raises:
        DatasetError: A split has no images, or one can't be read.
    """
    class_names = tuple(folders["train"])
    reader = _reader(folders, conf)
    files, labels, num_skipped = _listed(folders, class_names, reader if conf.on_error == "skip" else None)
    num_rows = sum(num_wanted(len(part), conf) for part in files.values())
    choice = image_memory(conf, num_rows * reader.row_bytes)
    chosen = split_parts(labels, conf, stratify=True)
    load = _resident if choice.memory == "resident" else _stream
    dataset = load(_Chosen(reader, files, chosen, class_names), conf, choice)
    encoding = {
        "classes": list(class_names),
        "image_size": [reader.height, reader.width] if reader.resizes else ORIGINAL,
        "channels": reader.channels,
    }
    return Dataset(replace(dataset.info, num_skipped=num_skipped), dataset.splits, encoding)


def image_memory(conf: OriginalPixelsConf, num_bytes: int, why_resident: str = "") -> MemoryChoice:
    """Return where images of ``num_bytes`` bytes once decoded live; see ``choose_memory``."""
    if conf.image_size == ORIGINAL and not why_resident:
        return MemoryChoice("stream", "images of different sizes are read from their files in each epoch")
    return choose_memory("stream" if conf.image_size == ORIGINAL else conf.memory, num_bytes, why_resident)


@dataclass(frozen=True)
class _Chosen:
    """Which images make which split: the rows of ``rows`` number the files of the split that the data has them in."""

    reader: ImageReader
    files: Mapping[str, Sequence[str]]
    rows: Mapping[str, Columns]
    class_names: tuple[str, ...]

    def keys(self, split: str) -> list[tuple[str, int]]:
        files = self.files.get(split, self.files["train"])
        part = self.rows[split]
        return [(files[row], label) for row, label in zip(part["row"].tolist(), part["y"].tolist(), strict=True)]

    def pixels(self, split: str) -> np.ndarray:
        return self.reader.all_of(self.reader.image, [file for file, _ in self.keys(split)])


def _listed(
    folders: Folders, class_names: Sequence[str], check: ImageReader | None
) -> tuple[dict[str, list[str]], dict[str, Columns], int]:
    """Return the files of each split, their rows and classes, and how many unreadable ones ``check`` left out."""
    files: dict[str, list[str]] = {}
    labels: dict[str, Columns] = {}
    num_skipped = 0
    below = images_below if check is None else _images_and_links
    for split, classes in folders.items():
        found = [(str(file), class_names.index(name)) for name in classes for file in below(classes[name])]
        if check is not None:
            readable = _readable([file for file, _ in found], check)
            num_skipped += len(found) - sum(readable)
            found = [one for one, kept in zip(found, readable, strict=True) if kept]
        if not found:
            place = next(iter(classes.values())).parent if classes else split
            message = f"{place}: there are no images of a class for the split '{split}'."
            raise or_leave_out(split, DatasetError(message, "Check dataset.path."))
        files[split] = [file for file, _ in found]
        labels[split] = {"y": np.asarray([label for _, label in found], np.int64), "row": np.arange(len(found))}
    _check_all_classes(labels["train"]["y"], folders["train"], class_names)
    return files, labels, num_skipped


def _readable(files: Sequence[str], reader: ImageReader) -> list[bool]:
    """Return for each file whether it is an image that can be read; those that are not are logged."""

    def check(file: str) -> bool:
        try:
            reader.image(file)
        except DatasetError as error:
            log.warning("skipped %s", error.message)
            return False
        return True

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(check, files))


def _check_all_classes(y: np.ndarray, classes: Mapping[str, Path], class_names: Sequence[str]) -> None:
    empty = np.flatnonzero(np.bincount(y, minlength=len(class_names)) == 0)
    if empty.size:
        folder = classes[class_names[empty[0]]]
        raise DatasetError(f"{folder}: the class folder contains no image.", "Remove the folder, or put images there.")


def images_below(folder: Path) -> list[Path]:
    """Return the files below a folder that are images by their names, in the order of their paths.

    Raises:
        DatasetError: One is a link to what does not exist.
    """
    return sorted(filter(is_data_file, _named_as_images(folder)), key=str)


def _images_and_links(folder: Path) -> list[Path]:
    """Return the same, with links that lead nowhere."""
    return sorted((file for file in _named_as_images(folder) if file.is_file() or file.is_symlink()), key=str)


def _named_as_images(folder: Path) -> Iterator[Path]:
    endings = frozenset(Image.registered_extensions())
    for file in files_below(folder):
        if file.suffix.lower() in endings and not file.name.startswith("."):
            yield file


def _reader(folders: Folders, conf: ImagesConf) -> ImageReader:
    """Return a reader for images of the size that ``conf`` says, or of that of the first one that can be read."""
    resizes = conf.image_size != ORIGINAL
    if resizes and conf.image_size is not None:
        return ImageReader(conf.image_size[0], conf.image_size[1], conf.channels)
    below = images_below if conf.on_error == "raise" else _images_and_links
    for file in (file for folder in folders["train"].values() for file in below(folder)):
        try:
            return ImageReader(*image_size(str(file), str(file)), conf.channels, resizes)
        except DatasetError:
            if conf.on_error == "raise":
                raise
    place = next(iter(folders["train"].values())).parent
    raise DatasetError(f"{place}: there are no images for the split 'train'.", "Check dataset.path.")


def _resident(chosen: _Chosen, conf: ImagesConf, choice: MemoryChoice) -> Dataset:
    splits = {split: {"x": chosen.pixels(split), "y": part["y"]} for split, part in chosen.rows.items()}
    content = Content(name="images", task="classification", class_names=chosen.class_names, memory_reason=choice.reason)
    return resident_dataset(splits, content, conf)


def _stream(chosen: _Chosen, conf: ImagesConf, choice: MemoryChoice) -> Dataset:
    reader = chosen.reader
    splits = {split: _stream_split(chosen.keys(split), reader, conf) for split in chosen.rows}
    statistics = given_statistics(conf.normalize, reader.channels)
    if statistics is None:
        moments = splits["train"].moments(STATISTICS_ROWS)
        statistics = moments.mean, moments.std
    info = DatasetInfo(
        name="images",
        task="classification",
        input_shape=(reader.channels, reader.height, reader.width),
        dtype="uint8",
        original_sizes=not reader.resizes,
        num_classes=len(chosen.class_names),
        class_names=chosen.class_names,
        num_rows={name: split.num_rows for name, split in splits.items()},
        fingerprint=files_fingerprint(Path(file) for part in chosen.files.values() for file in part),
        memory="stream",
        memory_reason=choice.reason,
        mean=statistics[0],
        std=statistics[1],
    )
    return Dataset(info, splits)


class ImageSplit(DecodedSplit, StreamSplit):
    """Streamed images. Each is a file, so that a worker reads its own rows only, in the order of a ResidentSplit."""

    reader: ImageReader

    @cached_property
    def files(self) -> list[tuple[int, str]]:
        """Class and file of each row."""
        return sorted((label, file) for piece in self.pieces for file, label in piece.key)

    def image(self, row: int) -> np.ndarray:
        return self.reader.image(self.files[row][1])

    def targets(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray([self.files[row][0] for row in rows.tolist()], np.int64)


def _stream_split(keys: Sequence[tuple[str, int]], reader: ImageReader, conf: ImagesConf) -> ImageSplit:
    """Return the split of these images, mixed once so that each piece has images of all classes."""
    order = np.random.default_rng(conf.seed).permutation(len(keys))
    groups = [[keys[row] for row in order[start : start + PIECE_ROWS]] for start in range(0, len(keys), PIECE_ROWS)]
    pieces = pieces_of((tuple(group), len(group)) for group in groups)
    counts = [piece.num_rows for piece in pieces]
    return ImageSplit(reader, pieces, RowFilter(), counts, reader.row_bytes, conf.num_shuffle_rows)
