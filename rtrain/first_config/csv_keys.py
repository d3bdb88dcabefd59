"""How a CSV file is read: the keys of ``dataset`` that its text calls for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.categories import have_decimal_commas, is_number, is_text
from rtrain.datasets.tables.formats.csv import CsvFormat, delimiter_of
from rtrain.datasets.tables.formats.csv_lines import made_up_names, seems_to_be_data
from rtrain.datasets.tables.spellings import is_mark
from rtrain.errors import DatasetError

LOOKED_AT = 1 << 16
"""Bytes of a file without a known ending that show whether it is text."""


def is_text_of_columns(file: Path) -> bool:
    """Return whether a file is text that has several columns, whatever its name."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(LOOKED_AT)
    if b"\0" in start:
        return False
    try:
        return len(CsvFormat(delimiter_of(file)).schema(file).names) > 1
    except DatasetError:
        return False  # a photo, say


def csv_keys(file: Path, label: str | None) -> dict[str, Any]:
    """Return the arguments of ``CsvFormat`` that read a file, which are keys of ``dataset`` too.

    Args:
        file: A CSV file.
        label: The column to predict, if it is known: a header has it.

    Raises:
        DatasetError: The file can't be read.
    """
    keys: dict[str, Any] = {"delimiter": delimiter_of(file)}
    table = _read(file, keys)
    if keys["delimiter"] != "," and _has_decimal_commas(table):
        keys["decimal"] = ","
    schema = CsvFormat(**keys).schema(file)
    if label not in schema.names and seems_to_be_data(schema, keys.get("decimal", ".")):
        keys["names"] = made_up_names(len(schema.names))
    table = _read(file, keys) if len(keys) > 1 else table
    if _has_blanks(table):
        keys["skipinitialspace"] = True
        table = _read(file, keys)
    marks = na_values_of(table)
    return keys | ({"na_values": marks} if marks else {})


def _read(file: Path, keys: Mapping[str, Any]) -> pa.Table:
    reading = CsvFormat(**keys)
    names = Counter(reading.schema(file).names)
    return reading.read(file, [name for name, count in names.items() if count == 1])


def _has_decimal_commas(table: pa.Table) -> bool:
    """Return whether a column of text holds numbers with a comma before the fraction."""
    texts = (table[name].unique().to_pylist() for name in table.column_names if is_text(table[name].type))
    return any(have_decimal_commas([text for text in column if text]) for column in texts)


def _has_blanks(table: pa.Table) -> bool:
    """Return whether there are blanks around the name of a column, or around a text."""
    texts = [table[name] for name in table.column_names if is_text(table[name].type)]
    every = (value for column in texts for value in column.unique().to_pylist() if value is not None)
    return any(text != text.strip() for text in (*table.column_names, *every))


def na_values_of(table: pa.Table) -> list[str]:
    """Return the texts that stand for missing values: alone in a column of numbers, or ``?`` anywhere."""
    found: set[str] = set()
    for column in table.columns:
        texts = {text.strip() for text in pc.unique(column).to_pylist() if text} if is_text(column.type) else set()
        marks = {text for text in texts if is_mark(text)}
        others = texts - marks
        if others and all(map(is_number, others)):
            found |= marks
        elif others:
            found |= marks & {"?"}
    return sorted(found)
