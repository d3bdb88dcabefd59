"""From files or a table to a dataset with the data's own columns."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.datasets.base import Columns, Dataset, DatasetInfo, ResidentSplit, Split
from rtrain.datasets.files import files_at, files_fingerprint, local
from rtrain.datasets.in_memory import fingerprint
from rtrain.datasets.memory import MemoryChoice, always_resident, choose_memory
from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.casts import cast_table
from rtrain.datasets.tables.frames import check_lengths, table_of_arrays
from rtrain.datasets.tables.spec import TableFormat, check_columns, check_has
from rtrain.datasets.whole.conf import WholeConf, WholeFilesConf
from rtrain.datasets.whole.splits import FilePiece, FileTable, HeldTable
from rtrain.errors import DatasetError

CHUNK_ROWS = 1 << 16


def load_files(name: str, reading: TableFormat, conf: WholeFilesConf) -> Dataset:
    """Return all rows of the files at ``conf.path``, as the split ``train``.

    Raises:
        DatasetError: There are none, a column is missing, or a file can't be read; names it.
    """
    reading = Adjustment(dtypes=conf.dtypes).format(reading)
    files = files_at(local(conf.path, reading.endings), reading.endings)
    columns = _columns(reading, files, conf)
    size = sum(reading.decoded_bytes(file, len(columns)) for file in files)
    choice = choose_memory(conf.memory, size)
    if choice.memory == "resident":
        table = _joined([reading.read(file, columns) for file in files], str(files[0]))
        return _dataset(name, HeldTable(table), table.schema, _content(table), choice)
    split = FileTable(reading, columns, *_pieces(reading, files, columns))
    schema = reading.schema(files[0])
    kept = schema.empty_table().select(columns).schema
    return _dataset(name, split, kept, files_fingerprint(files), choice)


def load_table(name: str, table: pa.Table, conf: WholeConf, where: str) -> Dataset:
    """Return the rows of a table in memory, as the split ``train``.

    Args:
        name: Of the source.
        table: The rows.
        conf: Which columns are taken.
        where: Where the rows come from, for messages.

    Raises:
        DatasetError: A column is missing or can't be cast; names it.
    """
    check_columns(table.schema.names if conf.columns is None else conf.columns, table.schema, where, "columns")
    if conf.columns is not None:
        table = table.select(conf.columns)
    _check_typed(conf, table.schema, where)
    table = cast_table(table, conf.dtypes or {}, where)
    choice = MemoryChoice("resident", always_resident(table.nbytes))
    return _dataset(name, HeldTable(table), table.schema, _content(table), choice)


def load_columns(name: str, columns: Columns, conf: WholeConf, where: str) -> Dataset:
    """Return rows in arrays by column, of any shapes, as the split ``train``; see ``load_table``."""
    if all(values.ndim == 1 for values in columns.values()):
        return load_table(name, table_of_arrays(columns, where), conf, where)
    check_lengths(columns, where)
    if conf.dtypes:
        raise DatasetError("dataset.dtypes has no effect on arrays.", "Cast them where they are created.")
    missing = [key for key in conf.columns or () if key not in columns]
    if missing:
        raise DatasetError(f"{where}: dataset.columns names '{missing[0]}', which is not a column.")
    taken = {key: columns[key] for key in conf.columns or columns}
    choice = MemoryChoice("resident", always_resident(sum(values.nbytes for values in taken.values())))
    kinds = {key: f"{values.dtype} {list(values.shape[1:])}" for key, values in taken.items()}
    return _dataset(name, ResidentSplit(taken), kinds, fingerprint({"train": taken}, ()), choice)


def _columns(reading: TableFormat, files: Sequence[Path], conf: WholeFilesConf) -> list[str]:
    """Return the columns to read, which all files have to have."""
    first = reading.schema(files[0])
    columns = first.names if conf.columns is None else conf.columns
    check_columns(columns, first, str(files[0]), "columns")
    _check_typed(conf, first.empty_table().select(columns).schema, str(files[0]))
    for file in files[1:]:
        check_has(columns, reading.schema(file), str(file), f"{files[0]} has")
    return list(columns)


def _check_typed(conf: WholeConf, taken: pa.Schema, where: str) -> None:
    """Refuse a type for a column that is not among those that are taken."""
    check_columns(list(conf.dtypes or ()), taken, where, "dtypes")


def _pieces(reading: TableFormat, files: Sequence[Path], columns: Sequence[str]) -> tuple[list[FilePiece], int]:
    """Return the pieces of all files and their rows, which are counted by reading one column."""
    pieces, num_rows = [], 0
    for file in files:
        row = 0
        for key in reading.pieces(file):
            pieces.append(FilePiece(key, row))
            row += sum(table.num_rows for table in reading.batches(key, columns[:1], (), row))
        num_rows += row
    return pieces, num_rows


def _joined(tables: Sequence[pa.Table], where: str) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        message = f"{where}: other files of the data have columns of other types: {error}"
        raise DatasetError(message, "Set the type: dataset.dtypes={COLUMN: string}") from error


def _content(table: pa.Table) -> str:
    """Return the sha256 over names, types and values of a table."""
    digest = sha256(str(table.schema.remove_metadata()).encode())
    for batch in table.combine_chunks().to_batches(CHUNK_ROWS):
        digest.update(batch.serialize())
    return digest.hexdigest()


def _dataset(name: str, split: Split, columns: Any, found: str, choice: MemoryChoice) -> Dataset:
    """Return the dataset of rows that are not empty; ``columns`` is an Arrow schema, or types by name."""
    if not split.num_rows:
        raise DatasetError(f"dataset={name}: there are no rows.", "Check dataset.path.")
    kinds = columns if isinstance(columns, dict) else {one.name: str(one.type) for one in columns}
    info = DatasetInfo(
        name=name,
        task="",
        input_shape=(),
        num_classes=None,
        num_rows={"train": split.num_rows},
        own_columns=kinds,
        fingerprint=found,
        memory=choice.memory,
        memory_reason=choice.reason,
    )
    return Dataset(info, {"train": split})
