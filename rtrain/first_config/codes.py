"""Columns of a CSV file that look like numbers, and are codes: what a first config makes of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.datasets.tables.formats.csv_codes import code_columns
from rtrain.datasets.tables.spellings import is_mark
from rtrain.first_config.columns import FEATURE, Column
from rtrain.first_config.flow import in_flow

_WHOLE = re.compile(r"\s*\+?\d+\s*")
_LOSES_MORE = re.compile(r"\s*(\+\d{4,}|\d{16,})\s*")
"""A telephone number, or digits that a float doesn't keep."""
_ZEROS = re.compile(r"\s*0\d+\s*")


def codes_of(file: Path, keys: Mapping[str, Any]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a CSV file that are codes, as categories with the texts of the file.

    Args:
        file: The file, whose columns have different names.
        keys: How it is read.
    """
    reading = CsvFormat(**keys)
    schema = reading.schema(file)
    names = code_columns(reading, file, schema, schema.names)
    adjusted = Adjustment(keys.get("na_values", ()), dict.fromkeys(names, "category"))
    written = adjusted.format(replace(reading, texts=names)).read(file, names) if names else None
    return {} if written is None else {name: written[name] for name in names}


def is_text_alone(code: pa.ChunkedArray) -> bool:
    """Return whether codes would lose digits or signs as numbers, and not just leading zeros."""
    texts = [text for text in _texts(code) if not is_mark(text)]
    return all(map(_WHOLE.fullmatch, texts)) and any(map(_LOSES_MORE.fullmatch, texts))


def noted(column: Column, code: pa.ChunkedArray) -> Column:
    """Return a column of numbers that may be codes, with what keeps them as they are written."""
    if column.use != FEATURE:
        return column
    name = in_flow(column.name)
    if any(map(_ZEROS.fullmatch, _texts(code))):
        return replace(column, note=f"to keep leading zeros: categorical: [{name}]")
    return replace(column, note=f"to keep it as written: dtypes: {{{name}: category}}")


def _texts(code: pa.ChunkedArray) -> list[str]:
    return list(filter(None, code.cast(pa.string()).unique().to_pylist()))
