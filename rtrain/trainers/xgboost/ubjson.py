"""UBJSON as XGBoost writes it.

XGBoost's own reader trusts each length in a file, and reads beyond its end. Here no length leads out of the file, and
whatever XGBoost doesn't write is refused: what this reader accepts, XGBoost's understands in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = {b"i": ">i1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"U": ">u1", b"d": ">f4"}
ARRAYS = {key: NUMBERS[key] for key in (b"U", b"l", b"L", b"d")}
MAX_DEPTH = 12
"""XGBoost's models are 8 deep."""


def read_ubjson(content: bytes) -> Any:
    """Return mappings, lists, texts, numbers and NumPy arrays.

    Raises:
        ValueError: It is cut off, too deep, or of a form that XGBoost doesn't write.
    """
    reader = _Reader(content)
    found = reader.value(MAX_DEPTH)
    reader.expect_end()
    return found


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def value(self, depth: int) -> Any:
        """Return what comes next."""
        marker = self._take(1)
        if depth == 0:
            raise ValueError("it is nested too deeply")
        if marker == b"{":
            return self._mapping(depth)
        if marker == b"[":
            return self._list(depth)
        if marker == b"S":
            return self._text()
        return self._number(marker)

    def expect_end(self) -> None:
        """Refuse what follows the model."""
        if self._place != len(self._content):
            raise ValueError("it has data after its end")

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._content[self._place : self._place + 1] != b"}":
            key = self._text()
            if key in found:
                raise ValueError(f"it contains {key!r} twice")
            found[key] = self.value(depth - 1)
        self._take(1)
        return found

    def _list(self, depth: int) -> Any:
        if self._take(1) != b"$":
            self._place -= 1
            return [self.value(depth - 1) for _ in range(self._length(b"#L"))]
        dtype = np.dtype(ARRAYS.get(self._take(1), "V"))
        length = self._length(b"#L")
        if dtype.itemsize == 0:
            raise ValueError("it contains an array of an unknown type")
        return np.frombuffer(self._take(length * dtype.itemsize), dtype)

    def _text(self) -> str:
        return self._take(self._length(b"L")).decode()

    def _length(self, marker: bytes) -> int:
        if self._take(len(marker)) != marker:
            raise ValueError(f"it has no length at byte {self._place}")
        return int(self._number(b"L"))

    def _number(self, marker: bytes) -> Any:
        if marker not in NUMBERS:
            raise ValueError(f"it contains an unknown type at byte {self._place}")
        dtype = np.dtype(NUMBERS[marker])
        return np.frombuffer(self._take(dtype.itemsize), dtype)[0].item()

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._content) - self._place:
            raise ValueError("it is cut off")
        self._place += size
        return self._content[self._place - size : self._place]
