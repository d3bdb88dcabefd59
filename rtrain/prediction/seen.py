"""Rows that an evaluation has in common with training."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import RtrainError
from rtrain.prediction.opening import Opened
from rtrain.prediction.scoring import read_chunks

log = logging.getLogger(__name__)


def num_trained_on(opened: Opened, split: str | None) -> int | None:
    """Return how many of the rows to evaluate the model was trained on; None where nothing can tell.

    A split of the data of training is as it was, unless the data has changed. Rows of other data are compared by
    content, features and label, with those of the train split, which is read again. Of streamed data it is known
    whether both are the same files.

    Args:
        opened: A checkpoint, and the data to evaluate on.
        split: The split of that data; None: all of its rows.
    """
    info = opened.info
    if opened.other_data and info.memory == "stream":
        with suppress(RtrainError):  # the data can't be split as training's was, say
            if split is None and opened.splits.info.fingerprint == info.fingerprint:
                return info.num_rows["train"]
        return None
    trained = unchanged_data(opened)
    if trained is None:
        return None
    if not opened.other_data:
        return info.num_rows["train"] if split == "train" else 0
    train = trained.splits["train"]
    assert isinstance(train, ResidentSplit), "it is held in memory"
    known = set(_digests(train.columns["x"], train.columns["y"]))
    reader = opened.rows(split)
    chunks = read_chunks(reader, reader.pieces, with_labels=True)
    return sum(one in known for chunk in chunks if chunk.y is not None for one in _digests(chunk.x, chunk.y))


def unchanged_data(opened: Opened) -> Dataset | None:
    """Return the data of training as it was then; None, with a warning, if it has changed, or if nothing can tell."""
    try:
        trained = opened.trained_data()
    except RtrainError:  # training's own files may be gone: nothing can be compared
        return None
    if trained is None or trained.info.fingerprint == opened.info.fingerprint:
        return trained
    which = "training's data" if opened.other_data else "the data"
    log.warning(f"{which} has changed since training: the model may have been trained on some of these rows")
    return None


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
