"""The Arrow files of a Hugging Face data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.datasets.hub.labels import arrow_columns
from rtrain.datasets.on_disk.arrow_column import ArrowColumn, mapped_table


def arrow_column(part: Any, name: str) -> ArrowColumn:
    """Return a column of a split, read from its files; from memory where they don't have its rows in their order."""
    files = tuple(one["filename"] for one in part.cache_files)
    tables = [mapped_table(file) for file in files]
    is_whole = sum(table.num_rows for table in tables) == len(part)
    if files and is_whole and all(name in table.column_names for table in tables):
        return ArrowColumn(files, name)
    return ArrowColumn((), name, tuple(arrow_columns(part, [name])[name].chunks))


def why_resident(columns: Mapping[str, ArrowColumn], path: str) -> str:
    """Return why these columns have to be held in memory; an empty string if they can stay in their files."""
    if all(column.files for column in columns.values()):
        return ""
    return f"the rows of {path} are not those of its files in their order"
