"""Text files of numbers with the label first: libsvm's sparse ones, or dense ones without a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.arrays.load import Arrays, ArraysConf, Names, feature_names, load_arrays, whole_numbers
from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import TablePath
from rtrain.datasets.memory import always_resident
from rtrain.datasets.without_effect import refuse_idle
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

ENDINGS = (".libsvm", ".svmlight", ".svm", ".train", ".test", ".tsv")
MAX_COLUMN = 10_000_000
"""Rows are dense: each of so many columns takes 40 MB."""
SIDE_FILES = {"weight": (".weight",), "group": (".query", ".group"), "base_margin": (".init", ".base_margin")}
SIDE_ENDINGS = tuple(ending for endings in SIDE_FILES.values() for ending in endings)


@dataclass(kw_only=True)
class LibsvmConf(ArraysConf):
    """``label [qid:query] column:value ...`` per line; or ``label value value ...``, by tab, comma or blank.

    Next to a file ``x``, ``x.weight`` has a weight per row, ``x.query`` (or ``x.group``) the rows of each query and
    ``x.init`` (or ``x.base_margin``) a score to start from per row, as LightGBM and XGBoost have them.
    """

    path: TablePath
    """File, folder or glob, or {train: ..., test: ...}."""

    absent: Annotated[str, *one_of("zero", "missing")] = "zero"
    """What a column is that a line doesn't name: 0, as LightGBM takes it, or NaN, as XGBoost takes it."""

    num_features: Annotated[int, Field(ge=1)] | None = None
    """Columns; null: as many as the files name."""

    first_column: Annotated[str, *one_of("auto", "0", "1")] = "auto"
    """Number of the first column; auto: 0 if any line names column 0, else 1."""


class Libsvm(Source):
    """Text files of numbers, label first, sparse (libsvm, svmlight) or dense, with LightGBM's side files; in memory."""

    Conf = LibsvmConf
    requires = ("sklearn",)

    def load(self, conf: LibsvmConf) -> Dataset:
        """Read the files at ``path`` as dense rows of float32."""
        from rtrain.datasets.files import files_by_split
        from rtrain.datasets.splitting.shares import read_for

        files = files_by_split(conf.path, ENDINGS, conf.split, SIDE_ENDINGS)
        every = [(split, file) for split, part in files.items() for file in part if not _is_side_file(file)]
        if _is_sparse(every[0][1]):
            read = _read_sparse(every, conf)
        else:
            because = f"{every[0][1]} has the number of each column on each line"
            refuse_idle(conf, ("absent", "num_features", "first_column"), because)
            read = []
            for split, file in every:
                with read_for(split):
                    read.append(_read_dense(file))
        parts = {
            split: _joined([rows for rows, (one, _) in zip(read, every, strict=True) if one == split])
            for split in files
        }
        width = parts["train"].x.shape[1]
        return load_arrays(parts, Names(source="libsvm", label="label", features=feature_names(width)), conf, conf.task)


def _is_side_file(file: Path) -> bool:
    return file.name.endswith(SIDE_ENDINGS)


def _is_sparse(file: Path) -> bool:
    with file.open("rb") as lines:
        words = next((words for line in lines if (words := line.partition(b"#")[0].split())), [])
    if not words:
        raise DatasetError(f"{file}: the file is empty.", "Check dataset.path.")
    return b":" in words[-1] or (len(words) == 1 and b"," not in words[0])


def _read_sparse(every: Sequence[tuple[str, Path]], conf: LibsvmConf) -> list[Arrays]:
    """Return the rows of all files of the splits; together, for they have to agree on the number of columns."""
    import numpy as np
    from sklearn.datasets import load_svmlight_files

    files = [file for _, file in every]
    zero_based: Any = {"auto": "auto", "0": True, "1": False}[conf.first_column]
    try:
        found = load_svmlight_files(
            [str(file) for file in files],
            n_features=conf.num_features,
            dtype=np.float32,
            zero_based=zero_based,
            query_id=True,
        )
    except (ValueError, OSError, OverflowError) as error:
        raise _broken(every, error) from error
    if found[0].shape[1] > MAX_COLUMN:
        raise _broken(every, ValueError(f"there are {found[0].shape[1]:,} columns, more than {MAX_COLUMN:,}."))
    _check_size(files, sum(x.shape[0] for x in found[::3]), found[0].shape[1])
    return [
        _rows(file, _dense(x, conf.absent), y, query if len(query) and _has_queries(file) else None)
        for file, x, y, query in zip(files, found[::3], found[1::3], found[2::3], strict=True)
    ]


def _has_queries(file: Path) -> bool:
    with file.open("rb") as lines:
        return any(b" qid:" in line for _, line in zip(range(100), lines, strict=False))


def _broken(every: Sequence[tuple[str, Path]], error: Exception) -> DatasetError:
    """Return the error that names the first file and line that are at fault."""
    from rtrain.datasets.splitting.shares import or_leave_out

    for split, file in every:
        for number, line in _numbered(file):
            problem = _problem(line)
            if problem:
                shown = line[:60].decode(errors="replace").strip()
                return or_leave_out(split, DatasetError(f"{file}: line {number} {problem}: {shown}"))
    return DatasetError(f"{every[0][1]}: {error}", "Check dataset.num_features and dataset.first_column.")


def _problem(line: bytes) -> str:
    """Return what is wrong with a line, in words that follow its number; an empty string for nothing."""
    words = line.partition(b"#")[0].split()
    if words and not _is_row(words):
        return "is not 'label column:value ...'"
    if _columns(line) and not 0 <= min(_columns(line)) <= max(_columns(line)) <= MAX_COLUMN:
        return f"names a column below 0 or above {MAX_COLUMN:,}"
    return ""


def _columns(line: bytes) -> list[int]:
    """Return the numbers of the columns that a line names, as far as they are some."""
    words = (word.partition(b":")[0] for word in line.partition(b"#")[0].split()[1:])
    return [int(word) for word in words if word.lstrip(b"-").isdigit()]


def _check_size(files: Sequence[Path], num_rows: int, num_columns: int) -> None:
    """Raise a DatasetError that names the line of the last column, if dense rows of all of them don't fit in memory."""
    try:
        always_resident(4 * num_rows * num_columns)
    except DatasetError as error:
        last = max(
            ((max(_columns(line), default=0), file, number) for file in files for number, line in _numbered(file)),
            key=lambda one: one[0],
        )
        message = f"{last[1]}: line {last[2]} names column {last[0]}, and {error.message}"
        raise DatasetError(
            message, "Correct the line; or train with the library directly, which accepts sparse rows."
        ) from error


def _numbered(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        yield from enumerate(lines, start=1)


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


def _dense(x: Any, absent: str) -> np.ndarray:
    import numpy as np

    if absent == "zero":
        return np.asarray(x.toarray())
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    dense = np.full(x.shape, np.nan, np.float32)
    dense[rows, x.indices] = x.data
    return dense


def _read_dense(file: Path) -> Arrays:
    import pyarrow as pa
    from pyarrow import csv

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
        values = pa.Table.from_arrays([column.cast(pa.float64()) for column in table.columns], names=table.schema.names)
    except pa.ArrowInvalid as error:
        message = f"{file}: {str(error)[:200]}"
        raise DatasetError(
            message, "Each line is a label and numbers, without a header; or use dataset=csv."
        ) from error
    found = values.to_pandas().to_numpy()
    return _rows(file, found[:, 1:].astype("float32"), found[:, 0], None)


def _rows(file: Path, x: np.ndarray, y: np.ndarray, query: np.ndarray | None) -> Arrays:
    import numpy as np

    more = {name: values for name, endings in SIDE_FILES.items() if (values := _side(file, endings)) is not None}
    if query is not None:
        more["group"] = query.astype(np.int64)
    elif "group" in more:
        sizes = more["group"].astype(np.int64)
        if sizes.sum() != len(y):
            message = f"{file}: has {len(y)} rows, but the rows of its queries add up to {sizes.sum()}."
            raise DatasetError(message, "Check the .query file next to it.")
        more["group"] = np.repeat(np.arange(len(sizes)), sizes)
    return Arrays(where=str(file), x=x, y=whole_numbers(y), more=more)


def _side(file: Path, endings: Sequence[str]) -> np.ndarray | None:
    import numpy as np

    for ending in endings:
        beside = file.with_name(f"{file.name}{ending}")
        if beside.is_file():
            try:
                return np.loadtxt(beside, np.float32, ndmin=1)
            except ValueError as error:
                raise DatasetError(f"{beside}: {error}", "It must contain numbers, one row per line.") from error
    return None


def _joined(parts: Sequence[Arrays]) -> Arrays:
    """Return the rows of several files as those of one. No query spans two files."""
    import numpy as np

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
