"""Parquet files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import TableConf
from rtrain.datasets.whole.conf import WholeFilesConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    from rtrain.datasets.tables.formats.parquet import ParquetFormat


log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class ParquetConf(TableConf):
    """Parquet files with flat columns."""

    on_error: Annotated[str, *one_of("raise", "skip")] = "raise"
    """A file that can't be read: stop with its name, or skip it as a whole and count it in the manifest; to find them,
    skip reads all files once more at the start."""


class Parquet(Source):
    """Parquet files: one, a folder or a glob; in memory or streamed by row group."""

    Conf = ParquetConf
    WholeConf = WholeFilesConf

    @property
    def table_format(self) -> type[ParquetFormat]:
        """Tables with a column for the label."""
        from rtrain.datasets.tables.formats.parquet import ParquetFormat

        return ParquetFormat

    def load(self, conf: ParquetConf) -> Dataset:
        """Read, or open for streaming, the files at ``path``."""
        from rtrain.datasets.tables.load import load_table

        if conf.on_error == "raise":
            return load_table("parquet", self.table_format(), conf)
        files, num_skipped = _readable(self.table_format(), conf)
        dataset = load_table("parquet", self.table_format(), conf, files)
        return replace(dataset, info=replace(dataset.info, num_skipped=num_skipped))

    def load_whole(self, conf: WholeFilesConf) -> Dataset:
        """Read, or open for streaming, all rows and columns of the files at ``path``."""
        from rtrain.datasets.whole.load import load_files

        return load_files("parquet", self.table_format(), conf)

    def open_rows(self, conf: ParquetConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows at ``path``; of the columns only the features of training are needed."""
        from rtrain.datasets.tables.predict_rows import open_table_rows

        return open_table_rows(self.table_format(), conf, encoding)


def _readable(reading: ParquetFormat, conf: ParquetConf) -> tuple[dict[str, list[Path]], int]:
    """Return the files that can be read to their end, by split, and how many can't; those are logged.

    Raises:
        DatasetError: A split has no file that can be read.
    """
    from rtrain.datasets.files import files_by_split

    readable: dict[str, list[Path]] = {}
    num_skipped = 0
    for split, files in files_by_split(conf.path, reading.endings, conf.split).items():
        problem = None
        for file in files:
            try:
                columns = reading.schema(file).names
                for piece in reading.pieces(file):
                    for _ in reading.batches(piece, columns):
                        pass
                readable.setdefault(split, []).append(file)
            except DatasetError as error:
                log.warning("skipped %s", error.message)
                num_skipped, problem = num_skipped + 1, error
        if split not in readable:
            raise DatasetError(f"no file of the split '{split}' can be read. The last one: {problem}")
    return readable, num_skipped
