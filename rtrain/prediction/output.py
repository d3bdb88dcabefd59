"""Where predictions go: a Parquet, CSV or JSON lines file, or a folder of Parquet files; complete or absent."""

from __future__ import annotations

import json
import math
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from rtrain.datasets.base import DatasetInfo, RawChunk
from rtrain.errors import ConfigError, PredictionError
from rtrain.prediction.columns import columns_of
from rtrain.prediction.places import check_folder, check_free
from rtrain.prediction.scoring import scores_of
from rtrain.runs.filesystem.files import finite, named_output
from rtrain.trainers.trained import ColumnsPredictor, Predictions, Predictor, QuantileModel, TextModel

INFINITIES = {math.inf: "Infinity", -math.inf: "-Infinity"}
"""In JSON lines, as in the JSON of Protocol Buffers."""
ENDINGS = (".parquet", ".csv", ".jsonl")
PART = "part-{:05d}.parquet"
GROUP_ROWS = 65_536
"""Rows of a row group, at least."""
PART_ROWS = 1_000_000
"""Rows of a part of a folder, at most."""


@dataclass(frozen=True)
class Output:
    """A file, or a folder of parts."""

    path: Path
    is_folder: bool

    @classmethod
    def at(cls, name: str, *, force: bool) -> Output:
        """Return the output called ``name``: a folder if it ends in a slash or is one, else a file.

        Args:
            name: The ending of a file says its format.
            force: Replace it if it is there; a folder only if it holds nothing but parts.

        Raises:
            ConfigError: The ending is unknown, the folder around it is missing or behind a URL, or it is there.
        """
        check_folder(name)
        path = Path(name)
        is_folder = name.endswith("/") or path.is_dir()
        if not is_folder and path.suffix not in ENDINGS:
            hint = f"For a folder of Parquet files, end the name with a slash: {name}/"
            raise ConfigError(f"{name}: predictions are written as {', '.join(ENDINGS)}.", hint)
        check_free(path, name, force=force)
        return cls(path, is_folder)

    @contextmanager
    def writing(self) -> Iterator[Callable[[pa.Table], None]]:
        """Return what writes a table after the ones before; the output gets its name when the block has ended well.

        Raises:
            RtrainError: It can't be written.
        """
        final = self.path.resolve()
        temporary = final.with_name(f".{final.name}-{secrets.token_hex(3)}.tmp")
        writer: _Writer = _Parts(temporary) if self.is_folder else _File(temporary, self.path.suffix)

        def write(table: pa.Table) -> None:
            with named_output(self.path):
                writer.write_table(table)

        try:
            yield write
            with named_output(self.path):
                writer.close()
            with named_output(self.path):
                _place(temporary, final)
        finally:
            _remove(temporary)


def _place(temporary: Path, final: Path) -> None:
    """Give the output its name. An existing folder is renamed away first, so the name never points to a mix of both."""
    aside = temporary.with_name(f"{temporary.name}.old")
    if final.is_dir():
        final.rename(aside)
    temporary.rename(final)
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prediction_table(predictor: Predictor, info: DatasetInfo, chunk: RawChunk) -> pa.Table:
    """Return the columns that the data brought, then ``prediction`` and, of classes, ``probability_<class>``.

    Of a model of several quantiles the predictions are ``prediction_q0.1``, ``prediction_q0.9`` and so on.

    Args:
        predictor: The model.
        info: The dataset of training, which knows the classes.
        chunk: Rows.
    """
    names = predictor.token_names if isinstance(predictor, TextModel) else info.class_names
    kept: dict[str, Any] = {name: _column(values) for name, values in chunk.kept.items()}
    if isinstance(predictor, ColumnsPredictor):
        return _with_kept(kept, _of_columns(predictor.predict_columns(columns_of(info, chunk)), names))
    scores = scores_of(predictor, info, chunk)
    if isinstance(predictor, QuantileModel) and predictor.quantiles and scores.ndim == 2:
        found = {f"prediction_q{at:g}": scores[:, place] for place, at in enumerate(predictor.quantiles)}
    else:
        found = _predicted(scores, names)
    return _with_kept(kept, found)


def _of_columns(predicted: Predictions, names: tuple[str, ...]) -> dict[str, Any]:
    scores = predicted.scores
    found = {} if scores is None else _predicted(scores, names)
    if scores is not None and scores.ndim == 1 and scores.dtype == np.int64:
        found = {"prediction": pa.array(names).take(pa.array(scores)) if names else scores}
    return found | {name: _nested(values) for name, values in predicted.others.items()}


def plain_table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    """Return columns as they are; of several numbers per row, lists."""
    return pa.table({name: _nested(values) for name, values in columns.items()})


def _nested(values: np.ndarray) -> Any:
    return pa.array(values.tolist()) if values.ndim > 1 else values


def _with_kept(kept: dict[str, Any], found: dict[str, Any]) -> pa.Table:
    both = sorted(set(kept) & set(found))
    if both:
        others = ",".join(name for name in kept if name not in both)
        message = f"the data has a column '{both[0]}', which the output needs for the model's predictions."
        hint = f"Choose the columns to keep: 'dataset.ids=[{others}]'. Of images and texts, all are kept: rename it."
        raise ConfigError(message, hint)
    return pa.table(kept | found)


def _predicted(scores: np.ndarray, names: tuple[str, ...]) -> dict[str, Any]:
    if scores.ndim == 1:
        return {"prediction": scores}
    names = names or tuple(map(str, range(scores.shape[-1])))
    columns: dict[str, Any] = {"prediction": _names_of_best(scores, names)}
    if scores.ndim == 2:
        columns |= {f"probability_{name}": scores[:, index] for index, name in enumerate(names)}
    return columns


def _names_of_best(scores: np.ndarray, names: tuple[str, ...]) -> pa.Array:
    """Return the likeliest class of each row, or a list of those of its places.

    Places without a prediction are NaN: the list ends before those at the end, which a row lacks, and holds null for
    others, words of which the tokenizer makes nothing. So the prediction of a word is at the place of the word.
    """
    all_names, best = pa.array(names), scores.argmax(axis=-1)
    if scores.ndim == 2:
        return all_names.take(pa.array(best))
    there, places = ~np.isnan(scores[..., 0]), np.arange(1, scores.shape[1] + 1)
    lengths = (there * places).max(axis=1, initial=0)
    within = places <= lengths[:, None]
    ends = np.concatenate([[0], lengths.cumsum()])
    return pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()), all_names.take(pa.array(best[within], mask=~there[within]))
    )


def _column(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


class _Writer(Protocol):
    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


def _in_order(table: pa.Table, names: list[str]) -> pa.Table:
    return table.select(names) if set(names) == set(table.column_names) else table


class _Columns:
    """The columns of a first table, which are those of the others as well."""

    schema: Any = None

    def same(self, table: pa.Table) -> pa.Table:
        """Return a table with these columns.

        Raises:
            PredictionError: A column is of another type than in the rows before.
        """
        if self.schema is None:
            self.schema = pa.schema([_without_null(field) for field in table.schema])
        for field in self.schema:
            if field.name not in table.column_names:  # rows of a file that lacks the label, say
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        try:
            return _in_order(table, self.schema.names).cast(self.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise PredictionError(
                f"columns differ between the predicted files or rows: {error}",
                "Keep only some of them in the output: 'dataset.ids=[...]', or read them as text: "
                "'dataset.dtypes={COLUMN: string}'",
            ) from error


class _File:
    """One file; its columns are those of the first table."""

    def __init__(self, path: Path, ending: str) -> None:
        self._path, self._ending = path, ending
        self._writer: Any = None
        self._columns = _Columns()

    def write_table(self, table: pa.Table) -> None:
        """Write the rows.

        Raises:
            PredictionError: A column is of another type than in the rows before.
        """
        same = self._columns.same(table)
        if self._writer is None:
            self._writer = _open(self._path, self._ending, self._columns.schema)
        self._writer.write_table(same)

    def close(self) -> None:
        """Close the file, if there were any rows."""
        if self._writer is not None:
            self._writer.close()


class Tables:
    """Predictions that stay in memory, as one table."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._columns = _Columns()

    def write_table(self, table: pa.Table) -> None:
        """Keep the rows.

        Raises:
            PredictionError: A column is of another type than in the rows before.
        """
        self._tables.append(self._columns.same(table))

    def joined(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(self._tables)


class _Parts:
    """A folder of Parquet files with up to ``PART_ROWS`` rows each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._num_parts, self._num_rows = 0, 0
        self._part: _File | None = None

    def write_table(self, table: pa.Table) -> None:
        """Write the rows to the current part, or to the next one if they would make it too long."""
        if self._part is None or self._num_rows + table.num_rows > PART_ROWS:
            self.close()
            self._folder.mkdir(exist_ok=True)
            self._part = _File(self._folder / PART.format(self._num_parts), ".parquet")
            self._num_parts, self._num_rows = self._num_parts + 1, 0
        self._part.write_table(table)
        self._num_rows += table.num_rows

    def close(self) -> None:
        """Close the current part."""
        if self._part is not None:
            self._part.close()


def _without_null(field: pa.Field) -> pa.Field:
    """Return a column of text for one that has no value in the first rows: later ones may have some."""
    return field.with_type(pa.string()) if pa.types.is_null(field.type) else field


def _open(path: Path, ending: str, schema: pa.Schema) -> Any:
    if ending == ".parquet":
        return _Parquet(path, schema)
    if ending == ".jsonl":
        return _JsonLines(path)
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise ConfigError(f"a CSV file can't contain lists, which '{nested[0]}' has.", "Write .parquet or .jsonl.")
    return csv.CSVWriter(path, schema)


class _Parquet:
    """Row groups large enough to be worth reading, whatever the size of the parts."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = parquet.ParquetWriter(path, schema)
        self._held: list[pa.Table] = []

    def write_table(self, table: pa.Table) -> None:
        """Write the rows once there are enough of them."""
        self._held.append(table)
        if sum(one.num_rows for one in self._held) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            self._file.write_table(pa.concat_tables(self._held))
        self._held = []


class _JsonLines:
    """An object per row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write_table(self, table: pa.Table) -> None:
        """Write the rows; what JSON lacks becomes null, if it is NaN, or the text ``Infinity`` or ``-Infinity``."""
        rows = (
            json.dumps(finite(row, INFINITIES), ensure_ascii=False, default=str, allow_nan=False)
            for row in table.to_pylist()
        )
        self._file.writelines(f"{row}\n" for row in rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
