"""The Arrow files of a Hugging Face data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.datasets.hub.labels import arrow_columns
from rtrain.datasets.on_disk.arrow_column import ArrowColumn, mapped_table


def files_of(part: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the files of a split; none where they don't have its rows in their order, or lack one of ``columns``."""
    files = tuple(one["filename"] for one in part.cache_files)
    tables = [mapped_table(file) for file in files]
    is_whole = sum(table.num_rows for table in tables) == len(part)
    return files if is_whole and all(set(columns) <= set(table.column_names) for table in tables) else ()


def arrow_column(part: Any, name: str) -> ArrowColumn:
    """Return a column of a split, read from its files; from memory where they don't have its rows."""
    files = files_of(part, [name])
    return ArrowColumn(files, name, () if files else tuple(arrow_columns(part, [name])[name].chunks))


def why_resident(files: Mapping[str, Sequence[str]], path: str) -> str:
    """Return why a data set has to be held in memory; an empty string if it can stay in its files.

    Args:
        files: Those of each split, as ``files_of`` finds them.
        path: The data set, for messages.
    """
    if all(files.values()):
        return ""
    return f"the rows of {path} are not those of its files in their order"
