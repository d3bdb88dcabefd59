"""Numbers that depend on what a row holds, and not on where it stands."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.errors import DatasetError

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
GOLDEN = 0x9E3779B97F4A7C15
BLOCK_ROWS = 4_096
"""Number of rows hashed together: their numbers stay in the processor's cache."""
MAX_WHOLE = 2.0**53
"""Whole numbers up to this are exact as float64."""


def random_numbers(seed: int | tuple[int, ...], keys: np.ndarray) -> np.ndarray:
    """Return a random number in [0, 1) for each key, (rows,) uint64, which depends on nothing but ``seed`` and the key.

    The mixing function is that of SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators",
    2014).
    """
    start = np.random.default_rng(seed).integers(0, 2**63, dtype=np.uint64)
    mixed = (keys + start) * np.uint64(GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)) * 2.0**-53


def row_hashes(columns: Iterable[np.ndarray]) -> np.ndarray:
    """Return a number for each row, (rows,) uint64: that of its values in all ``columns``, bit by bit."""
    words = [
        np.ascontiguousarray(values).reshape(len(values), math.prod(values.shape[1:])).view(np.uint32)
        for values in columns
    ]
    num_rows = len(words[0])
    hashes = np.zeros(num_rows, np.uint64)
    for start in range(0, num_rows, BLOCK_ROWS):
        block = hashes[start : start + BLOCK_ROWS]
        for word in (word for part in words for word in part[start : start + BLOCK_ROWS].T):
            block ^= word
            block *= np.uint64(GOLDEN)
            block ^= block >> np.uint64(32)
    return hashes


def value_hashes(values: pa.Array, what: str) -> np.ndarray:
    """Return a number for each value, (rows,) uint64, that of its text by FNV-1a: 3, 3.0 and '3' have the same.

    Raises:
        DatasetError: A value is nested, or a number that is too large to be read as it is written.
    """
    texts = texts_of(values, what)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    hashes = np.full(len(texts), FNV_OFFSET, np.uint64)
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        hashes[rows] = (hashes[rows] ^ data[starts[rows] + place]) * np.uint64(FNV_PRIME)
    return hashes


def texts_of(values: pa.Array, what: str) -> pa.Array:
    """Return each value as text, 3.0 as 3; errors as in ``value_hashes``."""
    found = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    try:
        if pa.types.is_floating(found.type):
            found = found.cast(pa.float64())
            if (pc.max(pc.abs(found)).as_py() or 0) > MAX_WHOLE:
                message = f"{what} contains floats beyond 2^53, which keep only some digits of whole numbers."
                hint = "Store them as integers or text. In CSV and JSON they are integers, but not in streamed features"
                raise DatasetError(message, f"{hint}: use dataset.memory=resident there.")
            is_whole = pc.equal(found, pc.trunc(found))
            whole = pc.if_else(is_whole, found, 0.0).cast(pa.int64()).cast(pa.large_string())
            return pc.if_else(is_whole, whole, found.cast(pa.large_string()))
        return found.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{what} is of type {found.type}, which can't identify rows: {error}") from error
