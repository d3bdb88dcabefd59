"""The first line of a CSV file: the names of its columns, or data already."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rtrain.datasets.tables.categories import is_number
from rtrain.datasets.tables.formats.byte_ranges import BREAK

BLOCK_BYTES, MAX_HEADER_BYTES = 1 << 20, 1 << 28
MOST_NAMES = 30
"""Most columns that a hint names one by one."""


@dataclass(frozen=True)
class FirstLine:
    """The first line of a file that is not empty."""

    text: bytes
    number: int
    """Counted from 1."""

    def values(self, delimiter: str) -> list[str]:
        """Return its values, without the blanks around them."""
        text = self.text.decode("utf-8-sig", errors="replace")
        found = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])
        return [value.strip() for value in found]


def first_line(file: Path) -> FirstLine:
    """Return the first line of a file, decompressed.

    Raises:
        OSError: It can't be read.
    """
    with pa.input_stream(str(file), compression="detect") as stream:
        start = stream.read(BLOCK_BYTES)
        while len(start) < MAX_HEADER_BYTES and not BREAK.search(start.lstrip()) and (more := stream.read(len(start))):
            start += more
    lines = start.lstrip(b"\r\n")
    num_blank = len(BREAK.findall(start[: len(start) - len(lines)]))
    return FirstLine(BREAK.split(lines, 1)[0], num_blank + 1)


def seems_to_be_data(schema: pa.Schema, decimal: str = ".") -> bool:
    """Return whether the first line of a file, taken as a header, holds what its columns hold.

    It has a number above each column of numbers; where there is none, a text twice.
    """
    numeric = [one.name for one in schema if pa.types.is_integer(one.type) or pa.types.is_floating(one.type)]
    if numeric:
        return all(is_number(name.replace(decimal, ".")) for name in numeric)
    return len(set(schema.names)) < len(schema.names)


def made_up_names(num_columns: int) -> list[str]:
    """Return names for the columns of a file without a header: c0, c1, ..."""
    return [f"c{place}" for place in range(num_columns)]
