"""Parquet files."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rtrain.config.schema import one_of
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import TableConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

BATCH_ROWS = 65_536


@dataclass(kw_only=True)
class ParquetConf(TableConf):
    """Parquet files with flat columns."""

    on_error: Annotated[str, *one_of("raise", "skip")] = "raise"
    """A file that can't be read: stop with its name, or skip it as a whole and count it in the manifest; to find them,
    skip reads all files once more at the start."""


class Parquet(Source):
    """Parquet files: one, a folder or a glob; in memory or streamed by row group."""

    Conf = ParquetConf

    def load(self, conf: ParquetConf) -> Dataset:
        """Read, or open for streaming, the files at ``path``."""
        from rtrain.datasets.tables.load import load_table

        if conf.on_error == "raise":
            return load_table("parquet", ParquetFormat(), conf)
        files, num_skipped = _readable(conf)
        dataset = load_table("parquet", ParquetFormat(), conf, files)
        return replace(dataset, info=replace(dataset.info, num_skipped=num_skipped))

    def open_rows(self, conf: ParquetConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows at ``path``; of the columns only the features of training are needed."""
        from rtrain.datasets.tables.predict_rows import open_table_rows

        return open_table_rows(ParquetFormat(), conf, encoding)


@dataclass(frozen=True)
class ParquetFormat:
    """Reads Parquet files with pyarrow; a piece is a row group."""

    endings: Sequence[str] = (".parquet", ".pq")

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns and their types."""
        with _opened(file) as parquet:
            return parquet.schema_arrow

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        import pyarrow as pa

        with _opened(file) as parquet:
            try:
                return parquet.read(list(columns))
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(file, error) from error

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return rows times columns of four bytes, from the file's own figures."""
        with _opened(file) as parquet:
            return int(parquet.metadata.num_rows) * (4 * num_columns + 4)

    def pieces(self, file: Path) -> list[tuple[Any, int]]:
        """Return file and number of each row group, and the rows before it."""
        with _opened(file) as parquet:
            groups = range(parquet.num_row_groups)
            num_rows = [parquet.metadata.row_group(group).num_rows for group in groups]
        return [((str(file), group), sum(num_rows[:group])) for group in groups]

    def batches(self, piece: Any, columns: Sequence[str], widened: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Yield the rows of a row group, some ten thousand at a time."""
        import pyarrow as pa

        file, group = piece
        with _opened(Path(file)) as parquet:
            try:
                for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(columns)):
                    yield pa.Table.from_batches([batch])
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(Path(file), error) from error


def _readable(conf: ParquetConf) -> tuple[dict[str, list[Path]], int]:
    """Return the files that can be read to their end, by split, and how many can't; those are logged.

    Raises:
        DatasetError: A split has no file that can be read.
    """
    from rtrain.datasets.files import files_by_split

    reading = ParquetFormat()
    readable: dict[str, list[Path]] = {}
    num_skipped = 0
    for split, files in files_by_split(conf.path, reading.endings).items():
        problem = None
        for file in files:
            try:
                columns = reading.schema(file).names
                for piece, _ in reading.pieces(file):
                    for _ in reading.batches(piece, columns):
                        pass
                readable.setdefault(split, []).append(file)
            except DatasetError as error:
                log.warning("skipped %s", error.message)
                num_skipped, problem = num_skipped + 1, error
        if split not in readable:
            raise DatasetError(f"no file of the split '{split}' can be read. The last one: {problem}")
    return readable, num_skipped


def _opened(file: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{file}: {error}", "Is it a Parquet file, and complete?")
