"""Splits that the data brings itself, but for those that the config leaves out; an error in one says how to do so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from rtrain.datasets.conf import SplitConf
from rtrain.errors import DatasetError

SPLITS = ("train", "val", "test")

T = TypeVar("T")
R = TypeVar("R")


def to_read(parts: Mapping[str, T], conf: SplitConf | None) -> dict[str, T]:
    """Return the splits that the data brings itself, but for those that the config leaves out: they may be unusable.

    Args:
        parts: The splits.
        conf: Which are left out; None: none is.
    """
    return {split: part for split, part in parts.items() if split == "train" or getattr(conf, split, None) != 0}


def read_each(parts: Mapping[str, T], read: Callable[[T], R]) -> dict[str, R]:
    """Return what ``read`` makes of each split that the data brings itself; errors say how to train without it."""
    found = dict[str, R]()
    for split, part in parts.items():
        with read_for(split):
            found[split] = read(part)
    return found


@contextmanager
def read_for(split: str) -> Iterator[None]:
    """Let an error in the block, which reads a split that the data brings itself, say how to train without it.

    Raises:
        DatasetError: The block did.
    """
    try:
        yield
    except DatasetError as error:
        if split == "train":
            raise
        raise or_leave_out(split, error) from error


def or_leave_out(split: str, error: DatasetError) -> DatasetError:
    """Return an error about a split that the data brings itself, with how to train without the split."""
    if split == "train":
        return error
    hints = [one for one in (error.hint, f"To train without the {split} split: dataset.split.{split}=0") if one]
    return DatasetError(error.message, "\n".join(hints))
