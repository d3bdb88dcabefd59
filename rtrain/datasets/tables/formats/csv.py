"""Reads CSV files, with a header line or names in place of one; also compressed."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from rtrain.config.files.data_files import COMPRESSED
from rtrain.datasets.tables.formats.byte_ranges import ByteRange, is_large, ranges_of
from rtrain.datasets.tables.formats.csv_blanks import SkippedBlanks
from rtrain.datasets.tables.formats.csv_lines import MOST_NAMES, first_line, made_up_names
from rtrain.datasets.tables.formats.digits import AS_WRITTEN, StreamedDigits, with_digits
from rtrain.datasets.tables.spellings import DELIMITERS, MISSING, is_mark
from rtrain.errors import DatasetError

COMPRESSED_FACTOR = 5
"""How much larger a compressed text is guessed to be once unpacked."""
BLOCK_BYTES = 1 << 20
OTHER_DELIMITERS = ",;\t|"
"""Signs that a file may have between its values, where it seems to have a single column."""


@dataclass(frozen=True)
class CsvFormat:
    """Reads CSV files with pyarrow."""

    delimiter: str
    texts: Sequence[str] = ()
    """Columns that are text whatever they look like: ``01234`` stays what it is."""
    names: Sequence[str] | None = None
    """What the columns of files without a header line are called; None: the first line says it."""
    na_values: Sequence[str] = ()
    """Texts that stand for missing values in columns of numbers, in addition to the usual ones."""
    keep_default_na: bool = True
    """Whether NA, null and the like are missing values in columns of numbers; an empty one always is."""
    skipinitialspace: bool = False
    """Leave out the blanks around values and names."""
    decimal: str = "."
    """The sign before the fraction of a number."""
    exact: Sequence[str] = ()
    """Columns whose numbers keep all digits."""
    endings: Sequence[str] = tuple(f".csv{packed}" for packed in ("", *COMPRESSED))

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns, with the types that the first megabyte suggests."""
        found = self._suggested(file)
        others = [sign for sign in OTHER_DELIMITERS if sign != self.delimiter and sign in found.names[0]]
        if len(found) == 1 and others:
            message = f"{file}: there is one column, '{found.names[0]}'."
            raise DatasetError(message, _other_delimiter(others[0]))
        return pa.schema([one.with_type(pa.string()) if one.type == pa.binary() else one for one in found])

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        try:
            options = {"parse_options": self._parse(), "convert_options": self._convert(columns, {})}
            found = arrow_csv.read_csv(self._text(file), self._lines(file), **options)
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(file, error) from error
        return with_digits(self._checked(found, file), self.exact, lambda name: self._written(file, name))

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return the size of the text: numbers are rarely smaller than their digits."""
        size = file.stat().st_size
        return size * COMPRESSED_FACTOR if file.suffix in COMPRESSED else size

    def pieces(self, file: Path) -> list[Any]:
        """Return the ranges of a large file; else the file itself, which has to be read from its beginning."""
        if self.skipinitialspace or not is_large(file):
            return [str(file)]
        schema = self._suggested(file)
        return ranges_of(file, self._lines(file).block_size, schema, lambda line: self._is_row(line, len(schema)))

    def _is_row(self, line: bytes, num_columns: int) -> bool:
        """Return whether a line has a value for each column, with quotes in pairs."""
        try:
            values = next(csv.reader([line.decode("latin1")], delimiter=self.delimiter), [])
        except csv.Error:  # a value is longer than that module's limit
            return False
        return line.count(b'"') % 2 == 0 and len(values) == num_columns

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows, about a megabyte of text at a time."""
        part = piece if isinstance(piece, ByteRange) else None
        file = Path(part.file if part else piece)
        types = _wider(part.schema if part else self._suggested(file), columns, widened)
        exact = [name for name in columns if name in self.exact]
        digits = StreamedDigits(exact, (), widened, lambda name: self._written(piece, name), file, first_row)
        try:
            with self._open(file, columns, types, part) as reader:
                for batch in reader:
                    yield digits.checked(self._checked(pa.Table.from_batches([batch]), file))
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(file, error, self.schema(file).names) from error

    def _suggested(self, file: Path) -> pa.Schema:
        """Return the columns, and the types that the reader would take: ``binary`` is text that is not UTF-8."""
        with self._open(file, None, {}) as reader:
            found = pa.schema(list(zip(_names(reader, file), reader.schema.types, strict=True)))
            counts = Counter(found.names)
            floats = [one.name for one in found if pa.types.is_floating(one.type) and counts[one.name] == 1]
            floats = [name for name in floats if name in self.exact]
            start = pa.Table.from_batches([reader.read_next_batch()]) if floats else None
        if start is not None:
            texts = partial(self._written, file)
            exact = with_digits(start.select(floats), floats, lambda name: islice(texts(name), start.num_rows))
            for one in exact.schema:
                kind = pa.string() if one.type == AS_WRITTEN else one.type
                found = found.set(found.get_field_index(one.name), one.with_type(kind))
        return found

    def _written(self, piece: Any, name: str) -> Iterator[str | None]:
        """Yield the numbers in a column, as they are written."""
        as_text = replace(self, texts=(*self.texts, name), exact=())
        if isinstance(piece, ByteRange):
            place = piece.schema.get_field_index(name)
            piece = piece._replace(schema=piece.schema.set(place, pa.field(name, pa.string())))
        for table in as_text.batches(piece, [name]):
            texts = pc.utf8_trim_whitespace(table[name])
            yield from pc.if_else(pc.is_in(texts, pa.array(self._missing)), None, texts).to_pylist()

    def _open(
        self, file: Path, columns: Sequence[str] | None, types: Mapping[str, pa.DataType], part: ByteRange | None = None
    ) -> Any:
        try:
            options = {"parse_options": self._parse(), "convert_options": self._convert(columns, types)}
            text = self._text(file) if part is None else part.open()
            return arrow_csv.open_csv(text, self._lines(file, part), **options)
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(file, error, part.schema.names if part else ()) from error

    def _lines(self, file: Path, part: ByteRange | None = None) -> Any:
        """Return which lines are rows, and how much text is read per block: at the least twice the first line.

        Raises:
            DatasetError: The first line has more or fewer values than there are names.
        """
        if part is not None and part.begin:
            return arrow_csv.ReadOptions(block_size=part.block_bytes, column_names=part.schema.names)
        first = first_line(file)
        if first.text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise _not_utf8(f"{file} is", "UTF-16")
        options = arrow_csv.ReadOptions(block_size=max(BLOCK_BYTES, 2 * len(first.text)))
        values = first.values(self.delimiter)
        if values and self._is_header(values):
            options.column_names, options.skip_rows = values, first.number
        elif values and self.names is not None:
            if len(values) != len(self.names):
                message = f"{file}: the first line has {len(values)} values, but dataset.names has {len(self.names)}."
                names = [*self.names, *made_up_names(len(values))[len(self.names) :]][: len(values)]
                hint = f"Name each column of the file once, in order: 'dataset.names=[{','.join(names)}]'"
                raise DatasetError(message, hint if len(names) <= MOST_NAMES else hint.partition(":")[0] + ".")
            options.column_names = list(self.names)
        return options

    def _is_header(self, values: Sequence[str]) -> bool:
        """Return whether the first line of a file, which has these values, names columns that are called otherwise."""
        if self.names is None:
            return self.skipinitialspace
        found, names = set(values), set(self.names)
        return len(found) == len(values) and (found <= names or names <= found)

    def _text(self, file: Path) -> Any:
        """Return what pyarrow reads: the file, or its text without blanks."""
        if not self.skipinitialspace:
            return file
        return pa.PythonFile(SkippedBlanks(pa.input_stream(str(file), compression="detect"), self.delimiter), mode="r")

    def _checked(self, table: pa.Table, file: Path) -> pa.Table:
        """Return the table, whose texts can all be read; of texts only the empty one is missing, not NA or null."""
        for index, field in enumerate(table.schema):
            if field.type == pa.binary():
                raise _not_utf8(f"{file}: column '{field.name}' is")
            if field.type == pa.string():
                values = table.column(index)
                values = pc.utf8_trim_whitespace(values) if self.skipinitialspace else values
                table = table.set_column(index, field.name, pc.if_else(pc.equal(values, ""), None, values))
        return table

    def _parse(self) -> Any:
        return arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    def _convert(self, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]) -> Any:
        types = {**dict.fromkeys(self.texts, pa.string()), **types}
        return arrow_csv.ConvertOptions(
            include_columns=columns, column_types=types, null_values=self._missing, decimal_point=self.decimal
        )

    @property
    def _missing(self) -> list[str]:
        """Texts that are missing values in columns of numbers."""
        known = MISSING if self.keep_default_na else [""]
        return [*known, *self.na_values, *(f" {one}" for one in self.na_values)]


def delimiter_of(file: Path) -> str:
    """Return what seems to separate the values of a file: the sign that its first line has most of.

    Raises:
        DatasetError: It can't be read.
    """
    try:
        line = first_line(file).text
    except OSError as error:
        raise _unreadable(file, error) from error
    unquoted = re.sub(rb'"[^"]*"', b"", line)
    return max(OTHER_DELIMITERS, key=lambda sign: unquoted.count(sign.encode()))


def _wider(schema: pa.Schema, columns: Sequence[str], widened: Sequence[str]) -> dict[str, pa.DataType]:
    """Return wider types than the beginning of the file suggests: what comes later may have a point."""
    types = {}
    for field in map(schema.field, columns):
        empty = pa.types.is_null(field.type)
        wide = field.name in widened and (empty or pa.types.is_integer(field.type))
        types[field.name] = pa.float64() if wide else pa.string() if empty else field.type
    return types


def _names(reader: Any, file: Path) -> list[str]:
    try:
        return list(reader.schema.names)
    except UnicodeDecodeError as error:
        raise _not_utf8(f"{file}: the names of the columns are") from error


def _not_utf8(what: str, encoding: str = "latin1") -> DatasetError:
    guessed = " (latin1 is a guess)" if encoding == "latin1" else ""
    hint = f"Convert the file: iconv -f {encoding} -t utf-8 FILE > NEW{guessed}"
    return DatasetError(f"{what} not encoded in UTF-8.", hint)


def _unreadable(file: Path, error: Exception, names: Sequence[str] = ()) -> DatasetError:
    if "Empty CSV" in str(error):
        return DatasetError(f"{file}: the file is empty.", "A CSV file needs a header line with column names.")
    if "invalid UTF8" in str(error):
        return _not_utf8(f"{file}: some text is")
    message = "".join(sign if sign.isprintable() else "?" for sign in str(error))
    place = re.match(r"In CSV column #(\d+): CSV conversion error to (\w+): (.*)", message)
    if place and names:
        name, kind, what = names[int(place[1])], place[2], place[3]
        message = f"{file}: column '{name}' starts with {kind} values, followed by an {what[:200]}."
        mark = re.search(r"invalid value '(.*)'", what)
        if mark and is_mark(mark[1]):
            return DatasetError(message, f"If it marks a missing value: 'dataset.na_values=[\"{mark[1]}\"]'")
        hint = f"Correct it, or set the type of the column: 'dataset.dtypes={{{name}: category}}'"
        return DatasetError(message, f"{hint}, or 'dataset.dtypes={{{name}: string}}'")
    if "straddling" in message:
        message = f"{file}: a row is longer than a megabyte, or a quoted value does not end."
        hint = "Check that quotes are closed and that dataset.delimiter is right"
        return DatasetError(message, f"{hint}, or hold the rows in memory: dataset.memory=resident")
    if "Expected 1 columns" in message and (sign := delimiter_of(file)).encode() in first_line(file).text:
        return DatasetError(f"{file}: {message[:200]}", _other_delimiter(sign))
    return DatasetError(f"{file}: {message[:200]}", "Check that it is a CSV file and that dataset.delimiter is right.")


def _other_delimiter(sign: str) -> str:
    """Return the question whether a sign is the delimiter, with its name where a shell would take it."""
    name = next((name for name, known in DELIMITERS.items() if known == sign), f"'{sign}'")
    return f"To use another delimiter: dataset.delimiter={name}"
