"""The two tokenizers that need no training: characters and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rtrain.errors import DatasetError


@dataclass(frozen=True)
class Tokens:
    """What the numbers of tokens stand for."""

    characters: str | None
    """The characters 0, 1, ... in the order of Unicode; None for bytes."""

    @classmethod
    def of(cls, tokenizer: str, texts: Iterable[str]) -> Tokens:
        """Return the tokens of ``bytes``, or of ``characters``: all that the texts of all splits hold."""
        if tokenizer == "bytes":
            return cls(None)
        return cls("".join(sorted(set().union(*texts))))

    @property
    def count(self) -> int:
        """How many different tokens there are."""
        return 256 if self.characters is None else len(self.characters)

    @property
    def names(self) -> tuple[str, ...]:
        """The characters; nothing for bytes."""
        return tuple(self.characters or "")

    def encode(self, text: str, where: str = "") -> np.ndarray:
        """Return the tokens of a text, (n,) int64.

        Raises:
            DatasetError: It holds a character that is none of the tokens.
        """
        if self.characters is None:
            return np.frombuffer(text.encode(), np.uint8).astype(np.int64)
        known, points = _points(self.characters), _points(text)
        codes = np.minimum(np.searchsorted(known, points), len(known) - 1)
        unknown = np.flatnonzero(known[codes] != points)
        if unknown.size:
            place = int(unknown[0])
            raise DatasetError(
                f"{where}: character {place + 1}, {text[place]!r}, is not one of the {self.count} learned characters.",
                "Remove or replace it, or train with dataset.tokenizer=bytes.",
            )
        return codes


def _points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
