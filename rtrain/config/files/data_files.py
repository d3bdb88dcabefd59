"""A file of data where a config, or the name of a dataset, is wanted."""

from __future__ import annotations

from pathlib import PurePath

ENDINGS = {
    "csv": (".csv", ".tsv", ".tab", ".data"),
    "parquet": (".parquet", ".pq"),
    "json": (".json", ".jsonl", ".ndjson"),
    "libsvm": (".libsvm", ".svm", ".svmlight"),
}
"""Which dataset reads files that end so."""
TABLES = ("csv", "parquet", "json")
"""Those of tables, of which a column is the label."""
COMPRESSED = (".gz", ".bz2", ".zst")
"""What the name of a compressed file of text has at its end."""
NOT_UNPACKED = (".xz", ".zip", ".7z", ".lz4", ".br", ".lzma", ".rar")
"""Endings of compressed files that no dataset reads."""


def kind_of(file: str) -> str | None:
    """Return the dataset that reads files of this name, also compressed; None if it is not a data file.

    Only compressed files have their ending second to last: ``rows.csv.yaml`` is a config.
    """
    path = PurePath(file)
    name = path.with_suffix("") if path.suffix in (*COMPRESSED, *NOT_UNPACKED) else path
    return next((kind for kind, endings in ENDINGS.items() if name.suffix in endings), None)


def words_for(file: str, has_label: bool = False) -> list[str] | None:
    """Return the overrides that train on ``file``; None if it is not a data file.

    Args:
        file: What was typed.
        has_label: Whether the column to predict is known.
    """
    kind = kind_of(file)
    if kind is None:
        return None
    label = ["dataset.label=..."] if kind in TABLES and not has_label else []
    return [f"dataset={kind}", f"dataset.path={file}", *label]
