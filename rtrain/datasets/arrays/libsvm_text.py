"""Text files of numbers with the label first: libsvm's sparse lines, or dense ones without a header."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from rtrain.datasets.arrays.load import Arrays, whole_numbers
from rtrain.datasets.memory import always_resident
from rtrain.datasets.splitting.left_out import or_leave_out, read_for
from rtrain.errors import DatasetError

MAX_COLUMN = 10_000_000
"""Rows are dense: each of so many columns takes 40 MB."""
SIDE_FILES = {"weight": (".weight",), "group": (".query", ".group"), "base_margin": (".init", ".base_margin")}
SIDE_ENDINGS = tuple(ending for endings in SIDE_FILES.values() for ending in endings)
Files = Sequence[tuple[str, Path]]
"""Files with the split of each."""


@dataclass(frozen=True, kw_only=True)
class SparseColumns:
    """What the numbers of columns mean that sparse lines name."""

    first: int | None
    """Number of the first column; None: 0 if any line names column 0, else 1."""
    count: int | None
    """Columns; None: as many as the lines name."""
    absent: str
    """``zero`` or ``missing``: the value of a column that a line does not name."""


def is_sparse(file: Path) -> bool:
    """Return whether the lines of a file name their columns.

    Raises:
        DatasetError: It is empty.
    """
    words = _first_words(file)
    if not words:
        raise DatasetError(f"{file}: the file is empty.", "Check dataset.path.")
    return b":" in words[-1] or (len(words) == 1 and b"," not in words[0])


def has_labels(file: Path) -> bool:
    """Return whether sparse lines begin with a label."""
    return b":" not in _first_words(file)[0]


def _first_words(file: Path) -> list[bytes]:
    return next((words for _, line in _numbered(file) if (words := _words(line))), [])


def read_sparse(files: Files, columns: SparseColumns, *, with_labels: bool = True) -> tuple[list[Arrays], int]:
    """Return the rows of all files, which have to agree on the columns; and the number of the first column.

    Args:
        files: Which files.
        columns: What is known of their columns.
        with_labels: Read the labels; else they may be missing, or hold anything.

    Raises:
        DatasetError: A line can't be read, or the rows don't fit in memory; names it.
    """
    found = _parsed(files, with_labels=with_labels)
    x = found[::3]
    named = [one.indices for one in x if len(one.indices)]
    if not named:
        raise DatasetError(f"{files[0][1]}: no line names a column.", "Check dataset.path.")
    lowest, highest = min(int(one.min()) for one in named), max(int(one.max()) for one in named)
    first = min(lowest, 1) if columns.first is None else columns.first
    count = highest + 1 - first if columns.count is None else columns.count
    if lowest < first or highest >= first + count or highest > MAX_COLUMN:
        raise _no_such_column(files, first, min(first + count - 1, MAX_COLUMN))
    _check_size(files, sum(one.shape[0] for one in x), count)
    return [
        _rows(
            *(file, _dense(one, first, count, columns.absent), labels if with_labels else None),
            query if len(query) and _has_queries(file) else None,
        )
        for (_, file), one, labels, query in zip(files, x, found[1::3], found[2::3], strict=True)
    ], first


def _parsed(files: Files, *, with_labels: bool) -> Any:
    """Return the columns as the files number them, the labels and the queries of each file, one after another.

    What scikit-learn does not accept may be lines without labels, or with columns in another order.
    """
    from sklearn.datasets import load_svmlight_files

    keys = {"dtype": np.float32, "zero_based": True, "query_id": True}
    try:
        return load_svmlight_files([str(file) for _, file in files], **keys)
    except (ValueError, OSError, OverflowError):
        tidied = []
        for split, file in files:
            with read_for(split):
                tidied.append(_tidied(file, with_labels=with_labels))
    try:
        return load_svmlight_files(tidied, **keys)
    except (ValueError, OSError, OverflowError) as error:
        raise DatasetError(f"{files[0][1]}: {error}", "Check the file.") from error


def _tidied(file: Path, *, with_labels: bool) -> io.BytesIO:
    """Return the lines of a file with their columns in ascending order; without labels, each begins with 0.

    Raises:
        DatasetError: A line is not a row; names it.
    """
    tidied = io.BytesIO()
    for number, line in _numbered(file):
        words = _words(line)
        if not words:
            continue
        if not with_labels:
            words = [b"0", *(words if b":" in words[0] else words[1:])]
        problem = _problem(words)
        if problem:
            raise _at_line(file, number, line, problem)
        query = [word for word in words[1:] if word.startswith(b"qid:")]
        tidied.write(b" ".join([words[0], *query, *sorted(_pairs(words), key=_column)]) + b"\n")
    tidied.seek(0)
    return tidied


def _no_such_column(files: Files, first: int, last: int) -> DatasetError:
    """Return the error that names the first line with a column before ``first`` or after ``last``."""
    split, file, number, line, column = next(one for one in _named_columns(files) if not first <= one[-1] <= last)
    problem = f"names column {column:,}, but the columns are {first} to {last:,}"
    hint = "Correct the line, or check dataset.num_features and dataset.first_column."
    return or_leave_out(split, _at_line(file, number, line, problem, hint))


def _named_columns(files: Files) -> Iterator[tuple[str, Path, int, bytes, int]]:
    """Yield each column that a line names, with the split, the file, and the number and the text of the line."""
    for split, file in files:
        for number, line in _numbered(file):
            for pair in _pairs(_words(line)):
                yield split, file, number, line, _column(pair)


def _at_line(file: Path, number: int, line: bytes, problem: str, hint: str | None = None) -> DatasetError:
    shown = line[:60].decode(errors="replace").strip()
    return DatasetError(f"{file}: line {number} {problem}: {shown}", hint)


def _words(line: bytes) -> list[bytes]:
    return line.partition(b"#")[0].split()


def _pairs(words: Sequence[bytes]) -> list[bytes]:
    """Return the words of columns, ``3:0.5`` say."""
    return [word for word in words if b":" in word and not word.startswith(b"qid:")]


def _column(pair: bytes) -> int:
    return int(pair.partition(b":")[0])


def _problem(words: Sequence[bytes]) -> str:
    """Return what is wrong with a line, in words that follow its number; an empty string for nothing."""
    if not _is_row(words):
        return "is not 'label column:value ...'"
    columns = Counter(map(_column, _pairs(words)))
    outside = next((one for one in columns if not 0 <= one <= MAX_COLUMN), None)
    if outside is not None:
        return f"names a column below 0 or above {MAX_COLUMN:,}"
    twice = next((one for one, count in columns.items() if count > 1), None)
    return "" if twice is None else f"names column {twice} twice"


def _is_row(words: Sequence[bytes]) -> bool:
    """Return whether a line is a label and pairs of a whole number and a number."""
    try:
        float(words[0])
        for word in words[1:]:
            column, _, value = word.partition(b":")
            float(value)
            if column != b"qid":
                int(column)
    except ValueError:
        return False
    return True


def _has_queries(file: Path) -> bool:
    return any(b"qid:" in line for _, (_, line) in zip(range(100), _numbered(file), strict=False))


def _check_size(files: Files, num_rows: int, num_columns: int) -> None:
    """Raise a DatasetError that names the line of the last column, if dense rows of all of them don't fit in memory."""
    try:
        always_resident(4 * num_rows * num_columns)
    except DatasetError as error:
        _, file, number, _, column = max(_named_columns(files), key=lambda one: one[-1])
        message = f"{file}: line {number} names column {column}, and {error.message}"
        raise DatasetError(
            message, "Correct the line; or train with the library directly, which accepts sparse rows."
        ) from error


def _numbered(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        yield from enumerate(lines, start=1)


def _dense(x: Any, first: int, count: int, absent: str) -> np.ndarray:
    """Return sparse rows as an array, (rows, count) float32; column ``first`` becomes column 0."""
    dense = np.full((x.shape[0], count), 0 if absent == "zero" else np.nan, np.float32)
    dense[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices - first] = x.data
    return dense


def read_dense(file: Path, num_features: int | None = None, *, with_labels: bool = True) -> Arrays:
    """Return the rows of a file that has a label and numbers on each line, by tab, comma or blank.

    Args:
        file: Which file.
        num_features: A file with just so many columns has no labels; None: it has some.
        with_labels: Read the labels; else they may be missing, or hold anything.

    Raises:
        DatasetError: It can't be read.
    """
    with file.open("rb") as lines:
        first = lines.readline()
    delimiter = next((sign for sign in "\t, " if sign.encode() in first.strip()), ",")
    try:
        table = csv.read_csv(
            file,
            csv.ReadOptions(autogenerate_column_names=True),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(null_values=["", "na", "nan", "NA", "NaN"]),
        )
        are_labels = table.num_columns != num_features
        table = table.select(range(int(are_labels and not with_labels), table.num_columns))
        values = pa.Table.from_arrays([column.cast(pa.float64()) for column in table.columns], names=table.schema.names)
    except pa.ArrowInvalid as error:
        message = f"{file}: {str(error)[:200]}"
        raise DatasetError(
            message, "Each line is a label and numbers, without a header; or use dataset=csv."
        ) from error
    found = values.to_pandas().to_numpy()
    if are_labels and with_labels:
        return _rows(file, found[:, 1:].astype("float32"), found[:, 0], None)
    return _rows(file, found.astype("float32"), None, None)


def _rows(file: Path, x: np.ndarray, y: np.ndarray | None, query: np.ndarray | None) -> Arrays:
    more = {name: values for name, endings in SIDE_FILES.items() if (values := _side(file, endings)) is not None}
    if query is not None:
        more["group"] = query.astype(np.int64)
    elif "group" in more:
        sizes = more["group"].astype(np.int64)
        if sizes.sum() != len(x):
            message = f"{file}: has {len(x)} rows, but the rows of its queries add up to {sizes.sum()}."
            raise DatasetError(message, "Check the .query file next to it.")
        more["group"] = np.repeat(np.arange(len(sizes)), sizes)
    return Arrays(where=str(file), x=x, y=None if y is None else whole_numbers(y), more=more)


def _side(file: Path, endings: Sequence[str]) -> np.ndarray | None:
    for ending in endings:
        companion = file.with_name(f"{file.name}{ending}")
        if companion.is_file():
            try:
                return np.loadtxt(companion, np.float32, ndmin=1)
            except ValueError as error:
                raise DatasetError(f"{companion}: {error}", "It must contain numbers, one row per line.") from error
    return None


def joined(parts: Sequence[Arrays]) -> Arrays:
    """Return the rows of several files as those of one. No query spans two files."""
    if len(parts) == 1:
        return parts[0]
    names = set(parts[0].more)
    if any(set(part.more) != names for part in parts):
        raise DatasetError(f"{parts[0].where}: some files of the split have no {' or '.join(SIDE_FILES)}.")
    more = {name: [part.more[name] for part in parts] for name in names}
    if "group" in more:
        starts = np.cumsum([0, *(int(part.max()) + 1 for part in more["group"])])
        more["group"] = [part + start for part, start in zip(more["group"], starts, strict=False)]
    return Arrays(
        where=parts[0].where,
        x=np.concatenate([part.x for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        more={name: np.concatenate(values) for name, values in more.items()},
    )
