"""Splits of tokens in place of splits of texts, which are read some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rtrain.datasets.base import Columns, Dataset, ResidentSplit, Split, objects
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.datasets.texts.mapped import MappedTexts
from rtrain.errors import DatasetError
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.token_cache import cached
from rtrain.trainers.transformers.tokens import identity, joined, packed, tags_of, tokens_of, with_targets


class SplitTexts:
    """The texts of a split, some at a time and as often as wanted."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield (rows,) of dtype object."""
        for part in self._split.own_rows(0, 1):
            yield part["x"]

    @property
    def fingerprint(self) -> str | None:
        """What differs from that of all other texts, where it is known without reading them."""
        return self._split.fingerprint if isinstance(self._split, MappedTexts) else None

    def targets(self) -> np.ndarray:
        """Return (rows,) classes or numbers to predict."""
        if isinstance(self._split, MappedTexts) and self._split.y is not None:
            return self._split.y
        return np.concatenate([part["y"] for part in self._split.own_rows(0, 1)])


def encoded_dataset(dataset: Dataset, tokenizer: Any, conf: Conf, task: str) -> Dataset:
    """Return the dataset with rows of tokens in place of texts; of long texts they are cached, and stay on disk.

    ``x`` and ``y`` are (rows,) of dtype object, int64 arrays of each row's own length; packed rows are all as long.
    """
    if dataset.info.dtype != "object":
        return dataset
    splits = {name: _encoded(split, tokenizer, conf, task) for name, split in dataset.splits.items()}
    for name, split in splits.items():
        if split.num_rows == 0:
            raise DatasetError(
                f"the texts of the split '{name}' don't fill one row of {conf.max_length} tokens.",
                "Lower trainer.max_length, or add more text.",
            )
    info = replace(dataset.info, num_rows={name: split.num_rows for name, split in splits.items()})
    if task == "causal-lm" and conf.packing:
        info = replace(info, dtype="int64", input_shape=(conf.max_length,))
    return replace(dataset, info=info, splits=splits)


def _encoded(split: Split, tokenizer: Any, conf: Conf, task: str) -> Split:
    texts, how = SplitTexts(split), {"tokenizer": identity(tokenizer)}
    if task == "causal-lm" and conf.packing:
        every = cached(texts, {**how, "joined": True}, lambda: ({"tokens": joined(one, tokenizer)} for one in texts))
        return ResidentSplit(packed(every["tokens"], conf.max_length))
    length = conf.max_length + (task == "causal-lm")
    found = cached(texts, {**how, "max_length": length}, lambda: (tokens_of(one, tokenizer, length) for one in texts))
    targets = None if task in ("causal-lm", "masked-lm") else texts.targets()
    borders = np.concatenate([[0], np.cumsum(found["lengths"])])
    return TokenSplit(found["tokens"], borders, targets, task, found.get("words"))


@dataclass
class TokenSplit(MappedSplit):
    """Rows of tokens of different lengths, which may lie on disk."""

    tokens: np.ndarray
    """(tokens,) int64, those of one row after those of another."""
    borders: np.ndarray
    """(rows + 1,) int64, where each row begins, and the last one ends."""
    y: np.ndarray | None
    """(rows,) targets; None: the tokens are."""
    task: str
    words: np.ndarray | None = None
    """(tokens,) int64, of which word in its row a token is the first one; -1: of none. With targets for words only."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.borders) - 1

    def columns(self, rows: np.ndarray) -> Columns:
        """Return ``x`` and ``y`` of some rows; see ``encoded_dataset``."""
        places = [slice(*ends) for ends in zip(self.borders[rows], self.borders[rows + 1], strict=True)]
        y = None if self.y is None else self.y[rows]
        if self.words is not None and y is not None:
            y = objects([tags_of(self.words[place], tags) for place, tags in zip(places, y, strict=True)])
        return with_targets([self.tokens[place] for place in places], y, self.task)
