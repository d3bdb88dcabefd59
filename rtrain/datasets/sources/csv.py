"""CSV files with a header line, also compressed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import TableConf
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.datasets.whole.conf import WholeFilesConf

log = logging.getLogger(__name__)


NAMED = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "space": " ", "colon": ":"}
"""Characters that have a name."""


def _sign(value: Any) -> Any:
    """Return the character that a name means, as a shell and other tools call it."""
    return NAMED.get(value, value) if isinstance(value, str) else value


@dataclass(kw_only=True)
class DelimiterConf:
    """What separates values."""

    delimiter: Annotated[str, BeforeValidator(_sign), Field(min_length=1, max_length=1)] = ","
    """Character between two values; ``tab``, ``semicolon``, ``comma``, ``pipe``, ``space`` and ``colon`` are names of
    some."""


@dataclass(kw_only=True)
class CsvConf(DelimiterConf, TableConf):
    """CSV files; the first line names the columns. ``.gz``, ``.bz2`` and ``.zst`` are unpacked while reading."""

    has_types: ClassVar[bool] = False


@dataclass(kw_only=True)
class WholeCsvConf(DelimiterConf, WholeFilesConf):
    """CSV files with all their columns; the first line names them."""


class Csv(Source):
    """CSV files with a header line: one, a folder or a glob; in memory or streamed."""

    Conf = CsvConf
    WholeConf = WholeCsvConf

    def load(self, conf: CsvConf) -> Dataset:
        """Read, or open for streaming, the files at ``path``."""
        from rtrain.datasets.tables.load import load_table

        dataset = load_table("csv", CsvFormat(conf.delimiter, (*(conf.dtypes or ()), *conf.untyped)), conf)
        if "" in dataset.info.feature_names:
            log.warning(
                "a column without a name is a feature; if pandas wrote its index, keep it out: 'dataset.ids=[\"\"]'"
            )
        return dataset

    def load_whole(self, conf: WholeCsvConf) -> Dataset:
        """Read, or open for streaming, all rows and columns of the files at ``path``."""
        from rtrain.datasets.whole.load import load_files

        return load_files("csv", CsvFormat(conf.delimiter, tuple(conf.dtypes or ())), conf)

    def open_rows(self, conf: CsvConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows at ``path``; of the columns only the features of training are needed."""
        from rtrain.datasets.tables.predict_rows import open_table_rows, text_columns

        return open_table_rows(CsvFormat(conf.delimiter, text_columns(conf, encoding)), conf, encoding)
