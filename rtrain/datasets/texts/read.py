"""Reads files of texts: plain ones, and tables with a column of texts or of lists of words."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from rtrain.config.files.data_files import COMPRESSED
from rtrain.datasets.base import objects
from rtrain.datasets.tables.formats.digits import with_digits
from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.datasets.tables.formats.parquet import ParquetFormat
from rtrain.datasets.tables.spec import check_columns
from rtrain.datasets.tables.spellings import MISSING
from rtrain.errors import DatasetError

PIECE_BYTES = 16 << 20
LONGEST_ROW_BYTES = 64 << 20
"""Of CSV files: a row lies in two blocks at most that are read at a time."""
PACKED = ("", *COMPRESSED)
PLAIN = tuple(f"{ending}{packed}" for packed in PACKED for ending in (".txt", ".text", ".md"))
DELIMITED = tuple(f"{ending}{packed}" for packed in PACKED for ending in (".csv", ".tsv"))
TABLES = (*DELIMITED, *JsonFormat().endings, *ParquetFormat().endings)


@dataclass(frozen=True)
class Texts:
    """The texts of one file, in order."""

    where: str
    texts: Sequence[Any] | np.ndarray
    """A str per row; or a list of words; or, of texts that stay on disk, the numbers of the rows."""
    labels: pa.Array | None = None
    """(rows,) values or lists of tags; None if there is no such column."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The columns other than the label, by name."""

    @property
    def are_words(self) -> bool:
        """Whether rows are lists of words."""
        return isinstance(next(iter(self.texts), None), list)

    def rows(self) -> np.ndarray:
        """Return the texts, (rows,) of dtype object; or the numbers of the rows, int64."""
        return self.texts if isinstance(self.texts, np.ndarray) else objects(self.texts)


def is_table(file: Path) -> bool:
    """Return whether a file is a table by its name; others are plain texts."""
    return file.name.lower().endswith(TABLES)


def read_plain(file: Path, each: str) -> Texts:
    """Return the whole text of a file, or its lines that are not blank.

    Raises:
        DatasetError: The file can't be read, or is not in UTF-8.
    """
    if each == "file":
        return Texts(str(file), ["".join(_pieces(file))], kept={"file": [str(file)]})
    return Texts(str(file), [line for part in read_lines(file) for line in part.texts])


def read_lines(file: Path) -> Iterator[Texts]:
    """Yield the lines of a file that are not blank, some at a time; see ``read_plain``."""
    for piece in _pieces(file):
        yield Texts(str(file), [line.rstrip("\r") for line in piece.split("\n") if line.strip()])


def _pieces(file: Path) -> Iterator[str]:
    """Yield the text of a file in pieces of whole lines."""
    first, rest = 0, b""
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            while block := stream.read(PIECE_BYTES):
                lines, end, rest = (rest + block).rpartition(b"\n")
                yield _decoded(lines + end, first, file)
                first += len(lines) + len(end)
            yield _decoded(rest, first, file)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: can't be read ({error}).") from error


def _decoded(piece: bytes, first: int, file: Path) -> str:
    """Return a piece that begins at the byte ``first`` of a file."""
    try:
        return piece.decode("utf-8" if first else "utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{file}: byte {first + error.start} is not UTF-8 ({error.reason})."
        # Any bytes are latin1: those of UTF-16 would become letters with a NUL after each.
        guess = "utf-16" if piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
        raise DatasetError(message, f"Convert it, e.g.: iconv -f {guess} -t utf-8 {file} > NEW") from error


def has_words(file: Path, text: str) -> bool:
    """Return whether a column of a table has lists of words."""
    reading = _format_of(file)
    return reading is not None and any(one.name == text and _is_list(one.type) for one in reading.schema(file))


def read_table(file: Path, text: str, label: str | None, label_needed: bool = True) -> Texts:
    """Return the texts of a file that is a table, and its labels where it has them; see ``table_texts``."""
    return table_texts(_read(file, text), str(file), text, label, label_needed)


def table_texts(table: pa.Table, where: str, text: str, label: str | None, label_needed: bool = True) -> Texts:
    """Return the texts of a table, and its labels where it has them.

    Raises:
        DatasetError: A column is missing or of another type, or a text is missing; names the row.
    """
    check_columns([text], table.schema, where, "text")
    labels = None
    if label is not None and (label_needed or label in table.schema.names):
        check_columns([label], table.schema, where, "label")
        labels = table[label].combine_chunks()
    kept = {name: table[name] for name in table.schema.names if name != label}
    return Texts(where, _texts(table[text], text, where), labels, kept)


def _read(file: Path, text: str) -> pa.Table:
    reading = _format_of(file)
    if reading is None:
        return _read_delimited(file, text, ".tsv" in file.name.lower())
    names = reading.schema(file).names
    return (replace(reading, exact=names) if isinstance(reading, JsonFormat) else reading).read(file, names)


def _format_of(file: Path) -> ParquetFormat | JsonFormat | None:
    """Return the format of a table; None for CSV and TSV, which are read otherwise than tables of numbers."""
    name = file.name.lower()
    if name.endswith(DELIMITED):
        return None
    return ParquetFormat() if name.endswith(tuple(ParquetFormat().endings)) else JsonFormat()


def _read_delimited(file: Path, text: str, tabs: bool) -> pa.Table:
    parse = csv.ParseOptions(
        delimiter="\t" if tabs else ",", quote_char=False if tabs else '"', newlines_in_values=not tabs
    )
    blocks = csv.ReadOptions(block_size=LONGEST_ROW_BYTES)

    def read(*texts: str) -> pa.Table:
        convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
        return csv.read_csv(file, blocks, parse_options=parse, convert_options=convert)

    def written(name: str) -> Iterator[str | None]:
        return (None if one in MISSING else one.strip() for one in read(text, name)[name].to_pylist())

    try:
        table = read(text)
        table = with_digits(table, table.column_names, written)
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(f"{file}: {str(error)[:200]}", "Is it a table with a header line?") from error
    for index, name in enumerate(table.schema.names):
        if name != text and pa.types.is_string(table.schema.types[index]):
            column = table.column(index)
            table = table.set_column(index, name, pc.if_else(pc.equal(column, ""), None, column))
    return table


def _texts(values: pa.ChunkedArray, column: str, where: str) -> list[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    check_texts(values, column, where)
    return list(values.to_pylist())


def check_texts(values: pa.ChunkedArray, column: str, where: str) -> None:
    """Raise a DatasetError if a text, or a word of a list, is missing, or values are neither."""
    kind = values.type
    if values.null_count:
        row = values.is_null().index(True).as_py() + 1
        raise DatasetError(f"{where}: row {row} has no text ('{column}' is empty).", "Remove such rows.")
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_words = _is_list(kind)
    if not is_text and not (is_words and pa.types.is_string(kind.value_type)):
        hint = "Choose another column."
        raise DatasetError(f"{where}: '{column}' is of type {kind}; a text, or a list of words, is needed.", hint)
    if is_words and pc.list_flatten(values).null_count:
        row = next(row for row, words in enumerate(values.to_pylist(), start=1) if None in words)
        raise DatasetError(f"{where}: row {row} has a word that is null in '{column}'.", "Remove it, with its tag.")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
