"""Rows that an evaluation has in common with training, where it reads other data than training named."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator

import numpy as np

from rtrain.datasets.base import ResidentSplit
from rtrain.errors import RtrainError
from rtrain.prediction.opening import Opened
from rtrain.prediction.scoring import read_chunks

log = logging.getLogger(__name__)


def num_trained_on(opened: Opened, split: str | None) -> int | None:
    """Return how many of the rows to evaluate the model was trained on; None where nothing can tell.

    Rows are compared by content, features and label, with those of the train split, which is read again. Of streamed
    data it is known whether both are the same files.

    Args:
        opened: A checkpoint, and the data to evaluate on.
        split: The split of that data; None: all of its rows.
    """
    info = opened.info
    if not opened.other_data:
        return info.num_rows["train"] if split in ("train", None) else 0
    if opened.trained_data is None:
        return None
    try:
        if info.memory == "stream":
            return info.num_rows["train"] if split is None and opened.fingerprint() == info.fingerprint else None
        trained = opened.trained_data()
    except RtrainError:  # training's own files may be gone: nothing can be compared
        return None
    if trained.info.fingerprint != info.fingerprint:
        return None
    train = trained.splits["train"]
    assert isinstance(train, ResidentSplit), "it is held in memory"
    known = set(_digests(train.columns["x"], train.columns["y"]))
    reader = opened.rows(split)
    chunks = read_chunks(reader, reader.pieces, with_labels=True)
    return sum(one in known for chunk in chunks if chunk.y is not None for one in _digests(chunk.x, chunk.y))


def tell_of_trained_on(count: int | None, num_rows: int) -> None:
    """Warn of metrics that are measured on rows of training."""
    if count:
        which = "all" if count == num_rows else f"{count:,} of these"
        log.warning("%s %s rows were used to train the model: the metrics are optimistic", which, f"{num_rows:,}")


def _digests(x: np.ndarray, y: np.ndarray) -> Iterator[bytes]:
    """Yield what stands for the content of each row."""
    for row, target in zip(x, y, strict=True):
        content = repr((row, target)).encode() if x.dtype == object else row.tobytes() + np.asarray(target).tobytes()
        yield hashlib.blake2b(content, digest_size=16).digest()
