"""Reads JSON files: an object per line, or a list of objects; also compressed."""

from __future__ import annotations

import io
import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from rtrain.config.files.data_files import COMPRESSED
from rtrain.datasets.conf import is_dropped
from rtrain.datasets.tables.formats.byte_ranges import ByteRange, is_large, ranges_of
from rtrain.datasets.tables.formats.digits import AS_WRITTEN, StreamedDigits, with_digits
from rtrain.datasets.tables.formats.json_document import document_table, has_columns, parsed_json, read_document
from rtrain.errors import DatasetError

T = TypeVar("T")

MAX_DEPTH = 1_000
"""Lists and objects inside of each other; Arrow has no limit, and ends the process when its stack is full."""
LONG_LINE = 4_000
"""A line of fewer bytes can't be deep enough to matter."""
BLOCK_BYTES = 4 << 20
"""Size of the text that is parsed in one call. A row can't be longer."""
_FIRST_IS_COLUMN = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[\[{]')
_CHANGED = re.compile(r"Column\(/([^/)]*)\) changed from (\w+) to (\w+)")
_CHANGED_WITHIN = re.compile(r"Column\(/([^/)]*)[^)]*\) changed")
"""Where a part of a nested column changed, too."""
KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""What Arrow calls the types of JSON."""
COMPRESSED_FACTOR = 6
"""How much larger a compressed text is guessed to be once unpacked."""


@dataclass(frozen=True)
class JsonFormat:
    """Reads JSON files with pyarrow."""

    exact: Sequence[str] = ()
    """Columns whose numbers keep all digits."""
    times_as_text: Sequence[str] = ()
    """Columns whose times are read as they are written."""
    drop: Sequence[str] = ()
    """Names and patterns of columns that may hold values of several types where they are not read."""
    endings: Sequence[str] = tuple(
        f"{ending}{packed}" for packed in ("", *COMPRESSED) for ending in (".jsonl", ".json", ".ndjson")
    )

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns, with the types that the first megabytes suggest."""
        stat = file.stat()
        _check_depth(file, stat.st_size, stat.st_mtime_ns)
        with _errors_named(file):
            if not _is_lines(file):
                return _readable(document_table(_document(file), self.exact, self.drop).schema)
            return _readable(self._suggested(file))

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the whole file."""
        with _errors_named(file):
            if not _is_lines(file):
                document = _document(file)
                return document_table({name: document[name] for name in columns}, self.exact)
            options = arrow_json.ReadOptions(block_size=BLOCK_BYTES)
            kinds = self._suggested(file) if self.times_as_text else ()
            known = pa.schema([one for one in kinds if one.name in self.times_as_text and one.type == pa.string()])

            def parsed(stream: Any) -> pa.Table:
                return arrow_json.read_json(stream, options, arrow_json.ParseOptions(explicit_schema=known))

            table = self._or_without_dropped(file, parsed, kept=columns)
            found = _checked(table.select(list(columns)))
            return with_digits(found, self.exact, lambda name: _written(_text(file), name))

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return the size of the text: numbers are rarely smaller than their digits."""
        return file.stat().st_size * (COMPRESSED_FACTOR if file.suffix in COMPRESSED else 1)

    def pieces(self, file: Path) -> list[Any]:
        """Return the ranges of a large file of lines; else the file itself, which has to be read from its beginning."""
        with _errors_named(file):
            if not is_large(file) or not _is_lines(file):
                return [str(file)]
            return ranges_of(file, BLOCK_BYTES, self._suggested(file), lambda line: line.strip().startswith(b"{"))

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows, some megabytes of text at a time."""
        part = piece if isinstance(piece, ByteRange) else None
        file = Path(part.file if part else piece)
        if part is None and not _is_lines(file):
            yield self.read(file, columns)
            return
        with _errors_named(file):
            found = part.schema if part else self._suggested(file)
        fields = [found.field(name) for name in columns]
        schema = pa.schema([_widened(field) if field.name in widened else field for field in fields])
        as_texts = [field.name for field in schema if field.type == AS_WRITTEN]
        schema = pa.schema([field.with_type(pa.float64()) if field.name in as_texts else field for field in schema])

        def opened() -> Any:
            return part.open() if part else _text(file)

        exact = [name for name in columns if name in self.exact]
        written, nested = (lambda name: _written(opened(), name)), (lambda name: _values(opened(), name))
        digits = StreamedDigits(exact, as_texts, widened, written, file, first_row, nested)
        with _errors_named(file), opened() as stream:
            for batch in _streamed(stream, schema):
                yield digits.checked(_checked(pa.Table.from_batches([batch]).select(list(columns))))

    def _suggested(self, file: Path) -> pa.Schema:
        """Return the columns of lines, whose depth was checked when they were looked at first."""
        return self._or_without_dropped(file, lambda stream: self._kinds(stream, file), size=BLOCK_BYTES)

    def _kinds(self, stream: Any, file: Path) -> pa.Schema:
        batches = _streamed(stream, None)
        kinds = batches.schema
        floats = [one.name for one in kinds if one.name in self.exact and pa.types.is_floating(one.type)]
        start = next(iter(batches), None) if floats else None
        if start is not None:
            first = pa.Table.from_batches([start])
            exact = with_digits(first, floats, lambda name: islice(_written(_text(file), name), first.num_rows))
            kinds = exact.schema
        return pa.schema([one.with_type(pa.string()) if self._is_time(one) else one for one in kinds])

    def _or_without_dropped(
        self, file: Path, read: Callable[[Any], T], kept: Sequence[str] = (), size: int | None = None
    ) -> T:
        """Return what ``read`` makes of lines, or of ``size`` bytes without the columns to drop if it can't."""
        try:
            with _text(file) as stream:
                return read(stream)
        except pa.ArrowInvalid as error:
            changed = _CHANGED_WITHIN.search(str(error))
            if changed is None or changed[1] in kept or not is_dropped(changed[1], self.drop):
                raise
        with _text(file) as stream:
            text = stream.read(size)
        lines = text[: text.rfind(b"\n") + 1 if len(text) == size else None].split(b"\n")
        rows = (_emptied(parsed_json(line), self.drop, kept) for line in lines if line.strip())
        return read(io.BytesIO("\n".join(map(json.dumps, rows)).encode()))

    def _is_time(self, field: pa.Field) -> bool:
        """Return whether a column of times is to be read as text."""
        return field.name in self.times_as_text and bool(pa.types.is_timestamp(field.type))


def _readable(schema: pa.Schema) -> pa.Schema:
    """Return the schema, or raise a ValueError: names that are not UTF-8 are found when they are looked at."""
    assert all(isinstance(name, str) for name in schema.names)
    return schema


def _checked(table: pa.Table) -> pa.Table:
    """Return the table, whose texts are UTF-8, which Arrow's reader leaves to others; else raise an ArrowInvalid."""
    for column in table.columns:
        if pa.types.is_string(column.type):
            column.validate(full=True)
    return table


def _text(file: Path) -> Any:
    return pa.input_stream(str(file), compression="detect")


def _document(file: Path) -> dict[str, list[Any]]:
    with _text(file) as stream:
        return read_document(stream.read(), file)


def _written(stream: Any, name: str) -> Iterator[str | None]:
    """Yield the numbers in a column of lines, as they are written."""
    return (None if value is None else str(value) for value in _values(stream, name, parsed=str))


def _values(stream: Any, name: str, parsed: Callable[[str], Any] | None = None) -> Iterator[Any]:
    """Yield the values in a column of lines, with all digits of whole numbers; ``parsed`` makes them of other types."""
    with stream:
        for line in io.BufferedReader(stream):
            if line.strip():
                yield json.loads(line, parse_int=parsed, parse_float=parsed).get(name)


def _streamed(stream: Any, schema: pa.Schema | None) -> Any:
    options = None
    if schema is not None:
        options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return arrow_json.open_json(stream, arrow_json.ReadOptions(block_size=BLOCK_BYTES), options)


def _widened(field: pa.Field) -> pa.Field:
    """Return a wider type for a feature of whole numbers: what comes later in the file may have a point."""
    whole = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
    return field.with_type(pa.float64()) if whole else field


def _is_lines(file: Path) -> bool:
    """Return whether each line is an object by itself, as far as the first one shows."""
    with _text(file) as stream:
        start = stream.read(1 << 16).lstrip()
        if start[:1] != b"{":
            return False
        if ".jsonl" in file.name or ".ndjson" in file.name:
            return True
        if b"\n" not in start and len(start) > LONG_LINE and _FIRST_IS_COLUMN.match(start):
            return any(b"\n" in block.rstrip() for block in iter(partial(stream.read, BLOCK_BYTES), b""))
    try:
        parsed_json(start.partition(b"\n")[0])
    except ValueError:
        # A line may continue; a document of one object over several lines begins with its brace or first key alone.
        return len(start.partition(b"\n")[0]) > 200
    return not _is_columns(start)


def _is_columns(start: bytes) -> bool:
    """Return whether the text is one object on one line that is a table, column by column."""
    first, _, rest = start.partition(b"\n")
    return not rest.strip() and has_columns(parsed_json(first))


def _emptied(row: Any, drop: Sequence[str], kept: Sequence[str]) -> dict[str, Any]:
    """Return a row whose columns to drop are empty.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"a {type(row).__name__} is not an object")
    return {name: None if name not in kept and is_dropped(name, drop) else value for name, value in row.items()}


@cache
def _check_depth(file: Path, size: int, changed: int) -> None:
    """Refuse JSON lines that would end the process, once for each content of a file.

    Raises:
        DatasetError: Lists or objects of a line are nested too deeply; names it.
    """
    with _errors_named(file), _text(file) as stream:
        rest, number = b"", 0
        while block := stream.read(BLOCK_BYTES):
            text = rest + block
            end = text.rfind(b"\n") + 1 or len(text)
            deep = _deep_line(text[:end])
            if deep is not None and _is_lines(file):
                message = f"{file}: in line {number + deep + 1}, lists or objects are nested too deeply."
                raise DatasetError(message, f"The maximum depth is {MAX_DEPTH}: is the file damaged?")
            rest, number = text[end:], number + text.count(b"\n", 0, end)


def _deep_line(text: bytes) -> int | None:
    """Return the number of the first line that is nested too deeply, counted from 0; None if none is."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    borders = np.concatenate([[-1], ends, [len(text)]])
    for number in np.flatnonzero(np.diff(borders) > LONG_LINE).tolist():
        line = text[borders[number] + 1 : borders[number + 1]]
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
            return int(number)
    return None


def _depth(line: bytes) -> int:
    """Return how many lists and objects of a line are inside of each other at most; texts count for nothing."""
    signs = np.frombuffer(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line), np.uint8)
    steps = np.isin(signs, list(b"[{")).astype(np.int64) - np.isin(signs, list(b"]}"))
    return int(steps.cumsum().max(initial=0))


@contextmanager
def _errors_named(file: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DatasetError:
    if "Empty JSON" in str(error) or (isinstance(error, json.JSONDecodeError) and error.doc in ("", b"")):
        return DatasetError(f"{file}: the file is empty.", "Write an object per line.")
    place = _first_broken_line(file) or _first_odd_line(file, str(error)) or str(error)[:200]
    return DatasetError(f"{file}: {place}", "Each line must be an object with the same names and types.")


def _first_broken_line(file: Path) -> str | None:
    """Return what is wrong with the first line that can't be parsed by itself; None if all can."""
    try:
        with _text(file) as stream:
            if stream.read(len(BOM_UTF8)) == BOM_UTF8:
                return (
                    "the file starts with a byte order mark, which JSON does not allow: remove its first three bytes."
                )
        if not _is_lines(file):
            return None
        with _text(file) as stream:
            for number, line in enumerate(io.BufferedReader(stream), start=1):
                try:
                    parsed = parsed_json(line.rstrip()) if line.strip() else {}
                except ValueError as error:
                    return f"line {number} is not a JSON object: {_mistake(error)}."
                if not isinstance(parsed, Mapping):
                    return f"line {number} is not a JSON object."
    except (pa.ArrowException, OSError):
        return None
    return None


def _mistake(error: ValueError) -> str:
    return f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)


def _first_odd_line(file: Path, error: str) -> str | None:
    """Return which line differs from those before as an error of Arrow's says, which numbers the rows of a block."""
    changed = _CHANGED.search(error)
    if (changed is None and "specified twice" not in error) or not _is_lines(file):
        return None
    with _text(file) as stream:
        for number, line in enumerate(io.BufferedReader(stream), start=1):
            if not line.strip():
                continue
            if changed is None:
                names = [name for name, _ in json.loads(line, object_pairs_hook=list)]
                twice = next((name for name, count in Counter(names).items() if count > 1), None)
                if twice is not None:
                    return f"line {number} has '{twice}' twice."
            else:
                name, before, now = changed.groups()
                if KINDS.get(type(json.loads(line).get(name))) == now:
                    return f"line {number} has '{name}' as {now}, and a line before has it as {before}."
    return None
