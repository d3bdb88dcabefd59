"""JSON files: an object per line, or a list of objects; also compressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import TableConf
from rtrain.datasets.whole.conf import WholeFilesConf

if TYPE_CHECKING:
    from rtrain.datasets.tables.formats.json import JsonFormat


@dataclass(kw_only=True)
class JsonConf(TableConf):
    """JSON lines (``.jsonl``, ``.ndjson``), or ``.json`` with a list of objects, or an object of columns.

    ``.gz``, ``.bz2`` and ``.zst`` are unpacked while reading. Only JSON lines can be streamed in parts.
    """


class Json(Source):
    """JSON files: an object per line or a list of objects; in memory or streamed."""

    Conf = JsonConf
    WholeConf = WholeFilesConf

    @property
    def table_format(self) -> type[JsonFormat]:
        """Tables with a column for the label."""
        from rtrain.datasets.tables.formats.json import JsonFormat

        return JsonFormat

    def load(self, conf: JsonConf) -> Dataset:
        """Read, or open for streaming, the files at ``path``."""
        from rtrain.datasets.splitting.by_column import SplitKeys
        from rtrain.datasets.tables.column_roles import compared_columns
        from rtrain.datasets.tables.load import load_table

        # Arrow reads times with a zone and without one as the same.
        times = SplitKeys.of(conf.split).names.get("by_time", ())
        reading = self.table_format(exact=compared_columns(conf), times_as_text=times, drop=conf.drop)
        return load_table("json", reading, conf)

    def load_whole(self, conf: WholeFilesConf) -> Dataset:
        """Read, or open for streaming, all rows and columns of the files at ``path``."""
        from rtrain.datasets.whole.load import load_files

        return load_files("json", self.table_format(), conf)

    def open_rows(self, conf: JsonConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows at ``path``; of the columns only the features of training are needed."""
        from rtrain.datasets.files import files_by_split
        from rtrain.datasets.tables.predict_rows import AsWritten, open_table_rows

        reading = self.table_format(drop=conf.drop if conf.ids else ())
        files = files_by_split(conf.path, reading.endings)
        every = () if conf.ids else (file for part in files.values() for file in part)
        names = {name for file in every for name in reading.schema(file).names}
        written = AsWritten.of(names, conf, encoding)
        reading = replace(reading, exact=tuple(written.exact), times_as_text=tuple(written.times))
        return open_table_rows(reading, conf, encoding, files)
