"""CSV files, also compressed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, DatasetInfo, RowReader, Source
from rtrain.datasets.conf import TableConf
from rtrain.datasets.files import files_by_split
from rtrain.datasets.splitting.left_out import read_for
from rtrain.datasets.tables.spellings import DELIMITERS
from rtrain.datasets.whole.conf import WholeFilesConf
from rtrain.errors import DatasetError
from rtrain.text.enumeration import few

if TYPE_CHECKING:
    import pyarrow as pa

    from rtrain.datasets.tables.formats.csv import CsvFormat
    from rtrain.datasets.tables.predict_rows import AsWritten

log = logging.getLogger(__name__)


MOST_PADDED = 5
"""Most columns with blanks around values that are listed."""


def _sign(value: Any) -> Any:
    """Return the character that a name means, as a shell and other tools call it."""
    return DELIMITERS.get(value, value) if isinstance(value, str) else value


def _check_names(value: list[str] | None) -> list[str] | None:
    for name, count in Counter(value or ()).items():
        if count > 1:
            raise ValueError(f"must name each column once, but names '{name}' {count} times")
    return value


@dataclass(kw_only=True)
class CsvTextConf:
    """How the text of a file becomes columns."""

    names: Annotated[list[str] | None, Field(min_length=1), AfterValidator(_check_names)] = None
    """Columns of files without a header line, in their order; null: the first line names them. A file whose first line
    holds these names, or some of them, is read by that line."""

    delimiter: Annotated[str, BeforeValidator(_sign), Field(min_length=1, max_length=1)] = ","
    """Character between two values; ``tab``, ``semicolon``, ``comma``, ``pipe``, ``space`` and ``colon`` are names of
    some."""

    keep_default_na: bool = True
    """Whether NA, null and the like are missing values in columns of numbers; false: they are texts there, as they
    are in columns of text. An empty value always is missing."""

    skipinitialspace: bool = False
    """Leave out the blanks around values, and around the names in the first line."""

    decimal: Annotated[str, BeforeValidator(_sign), *one_of(".", ",")] = "."
    """Sign before the fraction of a number; ``comma`` where files have ``1,5``, and another sign between values."""

    def __post_init__(self) -> None:
        """Refuse a file in which a comma means two things."""
        if self.decimal == self.delimiter:
            raise ValueError(f"decimal and delimiter are both {self.decimal!r}: name the delimiter, such as semicolon")

    def reading(self, texts: Sequence[str], na_values: Sequence[str] = ()) -> CsvFormat:
        """Return what reads such files, the columns ``texts`` as text."""
        from rtrain.datasets.tables.formats.csv import CsvFormat

        return CsvFormat(
            *(self.delimiter, texts, self.names, na_values, self.keep_default_na, self.skipinitialspace),
            decimal=self.decimal,
        )


@dataclass(kw_only=True)
class CsvConf(CsvTextConf, TableConf):
    """CSV files. ``.gz``, ``.bz2`` and ``.zst`` are unpacked while reading."""

    has_types: ClassVar[bool] = False

    @property
    def untyped(self) -> tuple[str, ...]:
        """Categories that are read as text, and called as numbers if they are some: then NA would be missing."""
        return super().untyped if self.keep_default_na else ()

    @property
    def may_hold_marks(self) -> bool:
        """Whether a text such as NA may stand for a missing value."""
        return self.keep_default_na and super().may_hold_marks


@dataclass(kw_only=True)
class WholeCsvConf(CsvTextConf, WholeFilesConf):
    """CSV files with all their columns."""


class Csv(Source):
    """CSV files: one, a folder or a glob; in memory or streamed."""

    Conf = CsvConf
    WholeConf = WholeCsvConf

    @property
    def table_format(self) -> type[CsvFormat]:
        """Tables with a column for the label."""
        from rtrain.datasets.tables.formats.csv import CsvFormat

        return CsvFormat

    def load(self, conf: CsvConf) -> Dataset:
        """Read, or open for streaming, the files at ``path``."""
        from rtrain.datasets.tables.column_roles import compared_columns
        from rtrain.datasets.tables.load import load_table

        reading = conf.reading((*(conf.dtypes or ()), *(conf.categorical or ())), conf.na_values)
        files = files_by_split(conf.path, reading.endings, conf.split)
        for split, part in files.items():
            with read_for(split):
                _check_header(reading, part[0], [conf.label])
        texts = (*reading.texts, *_texts_elsewhere(reading, files))
        reading = replace(reading, texts=texts, exact=compared_columns(conf))
        dataset = load_table("csv", reading, conf, files)
        _tell_of_texts(dataset.info)
        return dataset

    def load_whole(self, conf: WholeCsvConf) -> Dataset:
        """Read, or open for streaming, all rows and columns of the files at ``path``."""
        from rtrain.datasets.whole.load import load_files

        return load_files("csv", conf.reading(tuple(conf.dtypes or ())), conf)

    def open_rows(self, conf: CsvConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows at ``path``; of the columns only the features of training are needed."""
        from rtrain.datasets.tables.adjusted import AdjustedFormat, EmptyTexts
        from rtrain.datasets.tables.predict_rows import AsWritten, open_table_rows, spec_of, text_columns

        reading, spec = conf.reading(text_columns(conf, encoding), conf.na_values), spec_of(encoding, conf)
        files = files_by_split(conf.path, reading.endings)
        for part in files.values():
            _check_header(reading, part[0], spec.inputs)
        schemas = {file: reading.schema(file) for part in files.values() for file in part}
        written = AsWritten.of({name for schema in schemas.values() for name in schema.names}, conf, encoding)
        reading = replace(_as_written(reading, schemas, written), exact=tuple(written.exact))
        empty = [name for name, names in encoding["categories"].items() if "" in names]  # learned from another format
        return open_table_rows(AdjustedFormat(reading, EmptyTexts(empty)) if empty else reading, conf, encoding, files)


def _texts_elsewhere(reading: CsvFormat, files: Mapping[str, Sequence[Path]]) -> list[str]:
    """Return the columns that are text in one file and hold only NA and the like in another: they are text in both."""
    from rtrain.datasets.tables.categories import is_text

    every = [file for part in files.values() for file in part]
    columns = [column for file in every for column in reading.schema(file)] if len(every) > 1 else []
    texts = {column.name for column in columns if is_text(column.type)}
    return sorted({column.name for column in columns if str(column.type) == "null"} & texts)


def _as_written(reading: CsvFormat, schemas: Mapping[Path, pa.Schema], written: AsWritten) -> CsvFormat:
    """Return what reads codes (``00123``) and times as they are written, which the output has next to predictions.

    Args:
        reading: Reads the files.
        schemas: The columns of each file.
        written: Which columns they may be.
    """
    import pyarrow as pa

    from rtrain.datasets.tables.formats.csv_codes import code_columns

    found: set[str] = set()
    for file, schema in schemas.items():
        names = Counter(schema.names)
        kept = [one for one, count in names.items() if count == 1 and one in written.kept]
        found.update(code_columns(reading, file, schema, kept))
        found.update(one for one in kept if one in written.times and pa.types.is_temporal(schema.field(one).type))
    return replace(reading, texts=(*reading.texts, *sorted(found)))


def _tell_of_texts(info: DatasetInfo) -> None:
    """Warn of names and texts that are hardly meant: a column without a name, and blanks around a category."""
    if "" in info.feature_names:
        log.warning(
            "an unnamed column is used as a feature; if it is the index of pandas, exclude it: 'dataset.ids=[\"\"]'"
        )
    columns = {"the label": info.class_names, **{f"feature '{name}'": found for name, found in info.categories.items()}}
    padded = {what: next((text for text in texts if text != text.strip()), None) for what, texts in columns.items()}
    found = [f"{what} ('{text}')" for what, text in padded.items() if text is not None]
    if found:
        log.warning(
            "there are blanks around values of %s; to remove them: dataset.skipinitialspace=true",
            few(found, MOST_PADDED),
        )


def _tell_of_header(reading: CsvFormat, file: Path, schema: pa.Schema) -> None:
    """Warn of ``names`` for a file whose first line seems to name its columns itself."""
    from rtrain.datasets.tables.categories import is_number, is_text

    found = replace(reading, names=None).schema(file)
    pairs = zip(schema, found, strict=False)
    if any(is_text(one.type) and not is_text(own.type) for one, own in pairs) and not any(map(is_number, found.names)):
        log.warning(
            "%s: the first line seems to name the columns (%s, ...), but dataset.names differs; if so, remove "
            "dataset.names",
            *(file, ", ".join(found.names[:3])),
        )


def _check_header(reading: CsvFormat, file: Path, wanted: Sequence[str]) -> None:
    """Raise a DatasetError if a file has none of the columns ``wanted``, and begins with data.

    Raise one, too, if it has the columns but for the blanks around their names.
    """
    from rtrain.datasets.tables.formats.csv_lines import MOST_NAMES, made_up_names, seems_to_be_data

    schema = reading.schema(file)
    if reading.names is not None:
        _tell_of_header(reading, file, schema)
    padded = {name.strip(): name for name in schema.names if name != name.strip()}
    lacking = next((name for name in wanted if name not in schema.names and name in padded), None)
    if lacking is not None:
        message = f"{file}: there is no column '{lacking}', but one called '{padded[lacking]}'."
        raise DatasetError(message, "To remove blanks around names and values: dataset.skipinitialspace=true")
    if wanted and not set(wanted) & set(schema.names) and seems_to_be_data(schema, reading.decimal):
        shown = ", ".join(schema.names[:3])
        message = f"{file}: there is no column '{wanted[0]}'. The first line seems to be data ({shown}, ...)."
        names = made_up_names(len(schema.names))
        names = [*wanted, *names[len(wanted) :]][: len(names)] if len(wanted) > 1 else names
        names = names if len(names) <= MOST_NAMES else [*names[:2], "...", names[-1]]
        raise DatasetError(message, f"Name its {len(schema.names)} columns: 'dataset.names=[{','.join(names)}]'")
