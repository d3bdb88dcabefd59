"""How a CSV file is read: the keys of ``dataset`` that its text calls for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtrain.datasets.tables.formats.csv import CsvFormat, delimiter_of
from rtrain.datasets.tables.formats.csv_lines import made_up_names, seems_to_be_data
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
    schema = CsvFormat(**keys).schema(file)
    if label not in schema.names and seems_to_be_data(schema):
        keys["names"] = made_up_names(len(schema.names))
    return keys
