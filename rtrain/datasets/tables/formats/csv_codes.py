"""Columns of CSV files that look like numbers, and are codes: 00123 is not 123."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.formats.csv import CsvFormat

CODE = r"^\s*(0\d+|0[xX][0-9a-fA-F]+|\+\d+|\d+[eE]\d+)\s*$"
"""What would be another text as a number: 00123, 0x1F, the telephone number +49301234, the serial number 12E3."""
OF_MEASURES = r"\d[.,]\d|^\s*-\s*\d"
"""Numbers with a fraction or below 0, which no such code is."""
LONG = r"^\s*\d{16,}\s*$"
"""Whole numbers of which floats don't keep each digit."""


def code_columns(reading: CsvFormat, file: Path, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return the columns that are read as numbers, some of which would lose digits or signs of theirs.

    Args:
        reading: Reads the file.
        file: The file, of which the first megabyte is looked at, as for the types of its columns.
        schema: As ``reading`` returns it for the file.
        columns: Some of its columns, each of which it has once.
    """
    kinds = {name: schema.field(name).type for name in columns}
    numbers = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    as_texts = replace(reading, texts=(*reading.texts, *numbers))
    start = next(as_texts.batches(str(file), numbers), None) if numbers else None
    if start is None:
        return []

    def some_match(name: str, pattern: str) -> bool:
        return pc.any(pc.match_substring_regex(start[name], pattern)).as_py() is True

    patterns = {name: f"{CODE}|{LONG}" if pa.types.is_floating(kinds[name]) else CODE for name in numbers}
    return [name for name, one in patterns.items() if some_match(name, one) and not some_match(name, OF_MEASURES)]
