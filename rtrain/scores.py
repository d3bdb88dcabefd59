"""The file of predictions: Parquet, CSV or JSON lines; complete or absent."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from rtrain.datasets.base import DatasetInfo, RawChunk
from rtrain.errors import ConfigError

ENDINGS = (".parquet", ".csv", ".jsonl")


class OutputFile:
    """Where predictions go.

    Args:
        path: Its ending says the format.
        force: Replace the file if it is there.

    Raises:
        ConfigError: The ending is unknown, the folder is missing, or the file is there.
    """

    def __init__(self, path: Path, *, force: bool) -> None:
        if path.suffix not in ENDINGS:
            raise ConfigError(f"{path}: predictions are written as {', '.join(ENDINGS)}.")
        if not path.parent.is_dir():
            raise ConfigError(f"{path}: there is no folder {path.parent}.")
        if path.exists() and not force:
            raise ConfigError(f"{path} is there already.", "Name another file, or replace it with --force.")
        self._path = path

    @contextmanager
    def writing(self) -> Iterator[Callable[[DatasetInfo, RawChunk, np.ndarray], int]]:
        """Return what writes a batch and tells its rows; the file gets its name when the block has ended well."""
        temporary = self._path.with_name(f".{self._path.name}-{secrets.token_hex(3)}.tmp")
        writer: Any = None

        def write(info: DatasetInfo, chunk: RawChunk, scores: np.ndarray) -> int:
            nonlocal writer
            table = prediction_table(info, chunk, scores)
            if writer is None:
                writer = _open(temporary, self._path.suffix, table.schema)
            writer.write_table(table)
            return int(table.num_rows)

        try:
            yield write
            if writer is None:
                raise ConfigError("there are no rows to predict.")
            writer.close()
            temporary.rename(self._path)
        finally:
            temporary.unlink(missing_ok=True)


def prediction_table(info: DatasetInfo, chunk: RawChunk, scores: np.ndarray) -> pa.Table:
    """Return the columns that the data brought, then ``prediction`` and, of classes, ``probability_<class>``.

    Args:
        info: The dataset of training, which knows the classes.
        chunk: Rows.
        scores: What the predictor gave.
    """
    columns: dict[str, Any] = {name: _column(values) for name, values in chunk.kept.items()}
    if scores.ndim == 1:
        columns["prediction"] = scores
    else:
        names = info.class_names or tuple(map(str, range(scores.shape[-1])))
        best = scores.argmax(axis=-1)
        columns["prediction"] = [np.asarray(names)[row].tolist() for row in best]
        if scores.ndim == 2:
            columns |= {f"probability_{name}": scores[:, index] for index, name in enumerate(names)}
    return pa.table(columns)


def _column(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _open(path: Path, ending: str, schema: pa.Schema) -> Any:
    if ending == ".parquet":
        return parquet.ParquetWriter(path, schema)
    return csv.CSVWriter(path, schema) if ending == ".csv" else _JsonLines(path)


class _JsonLines:
    """An object per row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write_table(self, table: pa.Table) -> None:
        """Write the rows."""
        self._file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in table.to_pylist())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
