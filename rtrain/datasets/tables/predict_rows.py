"""Rows of tables to predict: what training remembers of its columns, and new files read by it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from rtrain.config.did_you_mean import closest
from rtrain.datasets.base import Dataset, RawChunk, Source
from rtrain.datasets.conf import ColumnsConf, TableConf
from rtrain.datasets.files import files_by_split
from rtrain.datasets.labels import Labels
from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.casts import TEXTS
from rtrain.datasets.tables.column_roles import Roles
from rtrain.datasets.tables.kept_columns import bytes_columns, kept_names, kept_values, not_text
from rtrain.datasets.tables.preprocessing import Preprocessing
from rtrain.datasets.tables.spec import TableFormat, TableSpec, check_columns, check_has
from rtrain.datasets.without_effect import as_recorded, check_kind
from rtrain.errors import DatasetError

Files = Mapping[str, Sequence[Path]]
"""The files of each split."""


def encoding_of(spec: TableSpec, task: str, dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Return how the columns of a table became rows, as plain data."""
    preprocessing = None if spec.preprocessing is None else asdict(spec.preprocessing)
    return {
        "task": task,
        "label": spec.labels.column,
        **spec.labels.encoding,
        "features": list(spec.features),
        "on_missing": spec.on_missing,
        "fill": [None if value != value else value for value in spec.fill],
        "dtype": spec.dtype,
        "categories": {name: list(names) for name, names in spec.categories.items()},
        "texts": list(spec.texts),
        "roles": asdict(spec.roles),
        "dtypes": dict(dtypes),
        "preprocessing": preprocessing,
    }


def spec_of(encoding: Mapping[str, Any], conf: ColumnsConf) -> TableSpec:
    """Return how new rows are read: as in training, but for what ``conf`` calls the label and the weight.

    Raises:
        DatasetError: The model was trained on other rows than tables.
    """
    check_kind("roles" in encoding, "tables")
    return TableSpec(
        features=tuple(encoding["features"]),
        labels=Labels.stored(conf.label, encoding),
        on_missing=encoding["on_missing"],
        fill=tuple(float("nan") if value is None else value for value in encoding["fill"]),
        dtype=encoding["dtype"],
        categories={name: tuple(names) for name, names in encoding["categories"].items()},
        texts=tuple(encoding["texts"] if "texts" in encoding else _texts_of_before(encoding)),
        roles=Roles(
            weight=conf.weight,
            group=encoding["roles"]["group"],
            base_margin=tuple(encoding["roles"]["base_margin"]),
        ),
        preprocessing=TypeAdapter(Preprocessing | None).validate_python(encoding.get("preprocessing")),
    )


def text_columns(conf: ColumnsConf, encoding: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that a format without types has to read as text.

    Those are the columns in ``dtypes``, what preprocessors take as text, and categories.
    """
    kinds = (encoding.get("preprocessing") or {}).get("kinds", {})
    texts = [column for column, kind in kinds.items() if kind == "text"]
    return (*dtypes_of(conf, encoding), *texts, *encoding["categories"])


def _texts_of_before(encoding: Mapping[str, Any]) -> list[str]:
    """Return the categories of an older checkpoint that have a name that no number has: 01234, or A.

    CSV files were read without their zeros where all other names were numbers.
    """
    return [
        column
        for column, names in encoding.get("categories", {}).items()
        if any(not name.isdecimal() or str(int(name)) != name for name in names)
    ]


@as_recorded()
def load_as_trained(source: Source, conf: Any, encoding: Mapping[str, Any]) -> Dataset:
    """Load the data of training again; for an older checkpoint, with the numbers that it read categories of CSV as."""
    numbers: set[str] = set()
    if isinstance(conf, ColumnsConf) and "texts" not in encoding:
        numbers = set(conf.untyped) & set(encoding.get("categories", ())) - set(_texts_of_before(encoding))
    if not numbers:
        return source.load(conf)
    dataset = source.load(replace(conf, dtypes={**(conf.dtypes or {}), **dict.fromkeys(numbers, "int64")}))
    dtypes = {name: dtype for name, dtype in dataset.encoding["dtypes"].items() if name not in numbers}
    return replace(dataset, encoding={**dataset.encoding, "dtypes": dtypes})


def dtypes_of(conf: ColumnsConf, encoding: Mapping[str, Any]) -> dict[str, str]:
    """Return what columns are cast to: as in training, except for columns in ``conf`` that are not features.

    Raises:
        DatasetError: ``conf`` has another type for a feature.
    """
    learned = encoding.get("dtypes", {})  # not there in checkpoints of before that could be asked for
    asked, inputs = conf.dtypes or {}, spec_of(encoding, conf).inputs
    for name in inputs:
        if name in asked and asked[name] != learned.get(name):
            message = f"dataset.dtypes reads '{name}' as {asked[name]}, but the model reads it as in training."
            raise DatasetError(message, "Leave it out.")
    return {**learned, **asked}


@dataclass(frozen=True)
class AsWritten:
    """The columns of new rows that are read as they are written, by files whose columns have no types."""

    exact: frozenset[str]
    """Columns whose numbers keep all digits."""
    kept: frozenset[str]
    """Columns that are nothing else than kept in the output."""
    times: frozenset[str]
    """Those of them that are text where they look like times."""

    @classmethod
    def of(cls, names: Iterable[str], conf: ColumnsConf, encoding: Mapping[str, Any]) -> AsWritten:
        """Return those of the columns ``names``, all of which are kept without ``ids``.

        Without features, all columns are the input of a custom loop, and read as in training.
        """
        spec, dtypes = spec_of(encoding, conf), dtypes_of(conf, encoding)
        kept = frozenset(conf.ids or names)
        only_kept = kept - {*spec.columns, *dtypes}
        if not spec.inputs:
            return cls(frozenset(), only_kept, frozenset())
        texts = frozenset([*spec.categories, *(name for name, dtype in dtypes.items() if dtype in TEXTS)])
        numbers = {*spec.inputs, *spec.roles.base_margin, spec.roles.weight, *dtypes} - texts
        compared = texts.union([spec.labels.column, *([spec.roles.group] if spec.roles.group else [])])
        return cls((kept | compared) - numbers, only_kept, only_kept)


def open_table_rows(
    reading: TableFormat, conf: TableConf, encoding: Mapping[str, Any], files: Files | None = None
) -> TableRows:
    """Open the files at ``conf.path``, of all splits, one after the other; ``files`` in place of them.

    Raises:
        DatasetError: A file is missing, or lacks a feature or an id; names the one that was probably meant.
    """
    spec = spec_of(encoding, conf)
    reading = Adjustment(conf.na_values, dtypes_of(conf, encoding)).format(reading)
    pieces, schemas, hexadecimal = [], dict[str, Any](), set[str]()
    files = files_by_split(conf.path, reading.endings) if files is None else files
    for part in files.values():
        for file in part:
            schemas[str(file)] = reading.schema(file)
            check_row_columns(schemas[str(file)], spec, conf.ids, str(file))
            keys = reading.pieces(file)
            pieces += [(str(file), key) for key in keys]
            kept = bytes_columns(schemas[str(file)], spec, conf.ids)
            hexadecimal |= not_text((table for key in keys if kept for table in reading.batches(key, kept)), kept)
    return TableRows(pieces, schemas, reading, spec, tuple(conf.ids), frozenset(hexadecimal))


def check_row_columns(schema: pa.Schema, spec: TableSpec, ids: Sequence[str], where: str) -> None:
    """Raise a DatasetError if a table has not the columns that a prediction needs; the label is not among them."""
    check_has(spec.inputs, schema, where, "the model takes")
    check_columns(spec.roles.base_margin, schema, where, "base_margin")
    if missing := [name for name in ids if name not in schema.names]:
        raise DatasetError(
            f"{where}: there is no column '{missing[0]}', which dataset.ids keeps next to each prediction.",
            "Name others, or keep every column that the model doesn't take: 'dataset.ids=[]'",
        )
    check_columns(ids, schema, where, "ids")
    several = [name for name, count in Counter(schema.names).items() if count > 1]
    if several and not ids:
        others = ",".join(name for name in schema.names if name not in (*several, *spec.inputs))
        message = (
            f"{where}: there are several columns '{several[0]}', and predictions keep every column except the features."
        )
        raise DatasetError(message, f"Keep others: 'dataset.ids=[{others}]'" if others else "Rename them.")


@dataclass(frozen=True)
class TableRows:
    """Reads tables piece by piece; ``ids`` are kept for the output, or every column except the features.

    A piece is a file and the key of the format.
    """

    pieces: Sequence[Any]
    schemas: Mapping[str, pa.Schema]
    """The columns of each file."""
    reading: TableFormat
    spec: TableSpec
    ids: tuple[str, ...]
    hexadecimal: frozenset[str] = frozenset()
    """Columns of bytes that are not UTF-8."""

    def read(self, piece: Any, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a piece."""
        try:
            yield from self._read(piece, 0, with_labels)
        except DatasetError:
            before = self._rows_before(piece)  # which only the message needs
            deque(self._read(piece, before, with_labels) if before else (), maxlen=0)
            raise

    def _read(self, piece: Any, row: int, with_labels: bool) -> Iterator[RawChunk]:
        file, key = piece
        schema = self.schemas[file]
        kept = kept_names(schema.names, self.spec, self.ids)
        needed = _needed(schema, self.spec, file) if with_labels else []
        columns = list(dict.fromkeys([*self.spec.inputs, *self.spec.roles.base_margin, *needed, *kept]))
        for table in self.reading.batches(key, columns, self.spec.inputs, row):
            yield raw_chunk(table, self.spec, _kept(table, self), file, row, with_labels)
            row += table.num_rows

    def _rows_before(self, piece: Any) -> int:
        """Return the rows of the file before a piece."""
        before = [key for file, key in self.pieces[: self.pieces.index(piece)] if file == piece[0]]
        columns = self.spec.inputs[:1]
        return sum(table.num_rows for key in before for table in self.reading.batches(key, columns, columns))


@dataclass(frozen=True)
class ArrowRows:
    """Rows of Arrow tables in memory; a piece is one of them."""

    pieces: tuple[tuple[str, pa.Table], ...]
    """With what to call them in messages."""
    spec: TableSpec
    ids: tuple[str, ...]
    hexadecimal: frozenset[str] = frozenset()
    """Columns of bytes that are not UTF-8."""

    def read(self, piece: tuple[str, pa.Table], with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield all rows of a table together."""
        where, table = piece
        kept = _kept(table, self)
        if with_labels:
            _needed(table.schema, self.spec, where)
        yield raw_chunk(table, self.spec, kept, where, 0, with_labels)


def open_arrow_rows(
    parts: Mapping[str, pa.Table], conf: ColumnsConf, encoding: Mapping[str, Any], where: str
) -> ArrowRows:
    """Open the Arrow tables in ``parts``, by split, to predict their rows; see ``load_arrow``.

    Raises:
        DatasetError: One lacks a feature or an id, or a value can't be cast.
    """
    spec, adjust = spec_of(encoding, conf), Adjustment(conf.na_values, dtypes_of(conf, encoding))
    places = arrow_places(parts, where)
    tables = [(places[split], adjust(table, places[split])) for split, table in parts.items()]
    for place, table in tables:
        check_row_columns(table.schema, spec, conf.ids, place)
    found = (not_text([table], bytes_columns(table.schema, spec, conf.ids)) for _, table in tables)
    return ArrowRows(tuple(tables), spec, tuple(conf.ids), frozenset[str]().union(*found))


def arrow_places(parts: Mapping[str, pa.Table], where: str) -> dict[str, str]:
    """Return what to call the table of each split in messages."""
    return {split: where if len(parts) == 1 else f"{where} ({split})" for split in parts}


def raw_chunk(
    table: pa.Table, spec: TableSpec, names: Mapping[str, pa.ChunkedArray], where: str, row: int, with_labels: bool
) -> RawChunk:
    """Return a table as rows to predict, or to evaluate, with the columns ``names`` next to them."""
    if not with_labels:
        margin = replace(spec.roles, weight=None, group=None).decode(table, where, row).get("base_margin")
        x, counts = spec.decode_new(table, where, row)
        return RawChunk(x, None, names, base_margin=margin, categories=counts)
    y, roles = spec.labels.encode(table[spec.labels.column], where, row), spec.roles.decode(table, where, row)
    x, counts = spec.decode_new(table, where, row)
    more = (roles.get(name) for name in ("group", "base_margin", "weight"))
    return RawChunk(x, y, names, *more, categories=counts)


def _needed(schema: pa.Schema, spec: TableSpec, where: str) -> list[str]:
    """Return the columns other than features that an evaluation needs."""
    weight = [spec.roles.weight] if spec.roles.weight else []
    _check_label(schema, spec, where)
    if not set(weight) <= set(schema.names):
        message = f"{where}: there is no column '{weight[0]}', which weighted the training rows."
        raise DatasetError(message, "Use another one, or weight all rows equally: dataset.weight=null")
    check_columns(spec.roles.columns, schema, where, "group")
    return [spec.labels.column, *spec.roles.columns]


def _check_label(schema: pa.Schema, spec: TableSpec, where: str) -> None:
    """Raise a DatasetError if there are no labels to compare with; a feature of the model is none."""
    label = spec.labels.column
    if label in spec.inputs:
        raise DatasetError(f"{where}: dataset.label names '{label}', which is a feature of the model.")
    others = pa.schema([one for one in schema if one.name not in spec.inputs])
    if label not in others.names and closest(label, others.names, 0.5) is None:
        message = f"{where}: dataset.label names '{label}', which is not a column."
        raise DatasetError(message, "If the labels have another name: dataset.label=COLUMN")
    check_columns([label], others, where, "label")


def _kept(table: pa.Table, rows: TableRows | ArrowRows) -> dict[str, pa.ChunkedArray]:
    return kept_values(table, kept_names(table.column_names, rows.spec, rows.ids), rows.spec, rows.hexadecimal)
