"""Images that are decoded one by one, each time a pass comes to them."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from PIL.Image import Image

from rtrain.datasets.base import Batch, Columns, EpochPlan, IndexedSplit, objects
from rtrain.datasets.images.pixels import decode, pixels

MAX_THREADS = 8
AHEAD_BYTES = 128 * 2**20
"""Decoded images that wait for the trainer take about as much memory at the most."""
STEPS_AHEAD = 2
"""Steps whose images are read while the trainer works on another one, if they take no more than that."""


@dataclass(frozen=True)
class ImageReader:
    """Reads images; a key is a sequence of pairs of file and class."""

    height: int
    width: int
    channels: int
    resizes: bool = True
    """All images are resized to that height and width; false: they are those of some image."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width that images are resized to; None: their own."""
        return (self.height, self.width) if self.resizes else None

    @property
    def row_bytes(self) -> int:
        """Size of an image once decoded."""
        return self.height * self.width * self.channels

    def read(self, key: Any) -> Iterator[Columns]:
        """Yield all images of a piece together."""
        x = self.together((self.image(file) for file, _ in key), len(key))
        yield {"x": x, "y": np.asarray([label for _, label in key], np.int64)}

    def together(self, images: Iterable[np.ndarray], count: int) -> np.ndarray:
        """Return ``count`` images as ``x`` of rows; (rows,) of dtype object where they keep their sizes."""
        if not self.resizes:
            return objects(list(images))
        x = np.empty((count, self.channels, self.height, self.width), np.uint8)
        for row, image in enumerate(images):
            x[row] = image
        return x

    def image(self, file: str) -> np.ndarray:
        """Return the image in a file, (channels, height, width) uint8; see ``decode``."""
        return self.decode(file, file)

    def of_image(self, image: Image, where: str) -> np.ndarray:
        """Return the pixels of an image that Pillow has opened; see ``pixels``."""
        return pixels(image, self.size, self.channels, where)

    def all_of(self, image: Callable[[Any], np.ndarray], keys: Sequence[Any]) -> np.ndarray:
        """Return the images of some keys as ``x``, each made by a thread per core: Pillow and numpy let them run."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return self.together(pool.map(image, keys), len(keys))

    def decode(self, content: str | bytes, where: str) -> np.ndarray:
        """Return an image, (channels, height, width) uint8, from the bytes of a file or its path; see ``pixels``.

        Raises:
            DatasetError: It is not an image, or broken, or of a kind that bytes can't show.
        """
        return decode(content, self.size, self.channels, where)


class DecodedSplit(IndexedSplit):
    """Images in the order of a ResidentSplit; a few threads decode those of the next steps."""

    reader: ImageReader

    @abstractmethod
    def image(self, row: int) -> np.ndarray:
        """Return an image of the split, (channels, height, width) uint8."""

    @abstractmethod
    def targets(self, rows: np.ndarray) -> np.ndarray:
        """Return the classes or numbers of some rows."""

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass."""
        for rows, images, num_global in self.steps(plan):
            yield self.batch(rows, self.reader.together(images, len(rows)), num_global)

    def batch(self, rows: np.ndarray, x: Any, num_global: int) -> Batch:
        return Batch(x, self.targets(rows), num_global)

    def inputs(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        return map(self.image, rows.tolist())

    def steps(self, plan: EpochPlan) -> Iterator[tuple[np.ndarray, Iterator[np.ndarray], int]]:
        """Yield the steps of one pass, their images read ahead by a few threads."""
        num_threads = max(1, min(MAX_THREADS, (os.cpu_count() or 1) // plan.world_size))
        own_rows = -(-plan.global_batch_size // plan.world_size)
        num_ahead = max(2 * num_threads, min(STEPS_AHEAD * own_rows, AHEAD_BYTES // self.reader.row_bytes))
        every = (row for rows, _ in self.indices(plan) for row in rows.tolist())
        with closing(_read_ahead(self.image, every, num_threads, num_ahead)) as images:
            for rows, num_global in self.indices(plan):
                yield rows, islice(images, len(rows)), num_global


def _read_ahead(
    read: Callable[[int], np.ndarray], rows: Iterator[int], num_threads: int, num_ahead: int
) -> Generator[np.ndarray]:
    """Yield the image of each row; threads read up to ``num_ahead`` of the next ones."""
    with ThreadPoolExecutor(num_threads) as pool:
        coming = deque(pool.submit(read, row) for row in islice(rows, num_ahead))
        try:
            while coming:
                coming.extend(pool.submit(read, row) for row in islice(rows, 1))
                yield coming.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
