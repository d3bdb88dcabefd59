"""A look at the file of a table: its columns, what the label is, and other files of the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.files.data_files import TABLES, kind_of
from rtrain.config.files.home import expanded
from rtrain.datasets.files import SPLIT_NAMES, existing_path
from rtrain.datasets.labels import LabelScan
from rtrain.datasets.registry import load_source
from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.casts import without_views
from rtrain.datasets.tables.formats.csv import CsvFormat, delimiter_of
from rtrain.datasets.tables.formats.csv_lines import made_up_names
from rtrain.datasets.tables.spec import TableFormat, check_columns
from rtrain.errors import ConfigError, DatasetError
from rtrain.first_config.codes import codes_of, is_text_alone, noted
from rtrain.first_config.columns import FEATURE, Column, columns_of
from rtrain.first_config.csv_keys import csv_keys, is_text_of_columns

MOST_SHOWN = 30
"""Most columns of a file without a header that are listed."""


@dataclass(frozen=True, kw_only=True)
class TableLook:
    """What there is in a table and its folder."""

    path: str
    """The file, as typed."""
    source: str
    """The dataset that reads it, one of ``TABLES``."""
    reading: Mapping[str, Any]
    """Keys of the dataset that say how the file is read."""
    label: str
    num_rows: int
    columns: Sequence[Column]
    """All of them, the label among them."""
    classes: Mapping[str, int]
    """Rows of each class, the commonest first; empty where the label is a number to predict."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """Files in the same folder with the same columns, by the split that their name says."""
    unlabelled: Sequence[str] = ()
    """Files in the same folder that lack only the label, or have it without a value."""

    def used(self, use: str) -> list[Column]:
        """Return the columns of one use, the label aside."""
        return [one for one in self.columns if one.use == use and one.name != self.label]


def look_at(path: str, label: str | None) -> TableLook:
    """Return what is in the table at ``path``, whose column ``label`` is to be predicted.

    Raises:
        ConfigError: The file is not a table, or there is no label.
        DatasetError: The file can't be read, or the label is not a column, or can't be learned.
    """
    source, file = _table_at(path)
    keys = csv_keys(file, label) if source == "csv" else {}
    reading = _reading(source, keys)
    schema = reading.schema(file)
    names = schema.names
    if "na_values" in keys:
        reading = Adjustment(keys["na_values"]).format(reading)
    if "names" in keys and label not in names:
        raise _without_header(path, CsvFormat(keys["delimiter"]).schema(file).names, label)
    if label is None:
        raise ConfigError("--label: the column to predict is missing.", f"There are: {', '.join(names)}")
    if label not in names:
        raise ConfigError(f"--label: {path} has no column '{label}'.", nearest_or_all(label, names, 0.5))
    check_columns(list(dict.fromkeys(names)), schema, path, "columns")
    table = without_views(reading.read(file, names))
    if not table.num_rows:
        raise DatasetError(f"{path} has no rows: there is nothing to learn from.", "Name another file.")
    splits, unlabelled = _beside(path, names, label, reading)
    codes = codes_of(file, keys) if source == "csv" else {}
    texts = {name: code for name, code in codes.items() if name != label and is_text_alone(code)}
    columns = columns_of(_with(table, texts), label)
    categories = [one.name for one in columns if one.name in texts and one.use == FEATURE]
    classes = _classes(table, label, path)
    if classes and label in codes:
        classes = _classes(_with(table, {label: codes[label]}), label, path)
        categories.append(label)
    if categories:
        keys = {**keys, "dtypes": dict.fromkeys(categories, "category")}
    return TableLook(
        path=path,
        source=source,
        reading=keys,
        label=label,
        num_rows=table.num_rows,
        columns=[noted(one, codes[one.name]) if one.name in codes.keys() - texts else one for one in columns],
        classes=classes,
        splits=splits,
        unlabelled=unlabelled,
    )


def column_names(path: str) -> list[str]:
    """Return the names of the columns of the table at ``path``, of which only the beginning is read.

    Raises:
        ConfigError: The file is not a table.
        DatasetError: The file can't be read.
    """
    source, file = _table_at(path)
    keys = {"delimiter": delimiter_of(file)} if source == "csv" else {}
    names: list[str] = _reading(source, keys).schema(file).names
    return names


def _with(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return a table with other columns in place of those of the same names."""
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _table_at(path: str) -> tuple[str, Path]:
    """Return the dataset that reads the table at ``path``, by its ending or else its text; and the file."""
    source = kind_of(path) or ("csv" if is_text_of_columns(expanded(path)) else None)
    if source not in TABLES:
        hint = "For images: rtrain fit resnet dataset=images dataset.path=FOLDER. All kinds of data: rtrain datasets"
        raise ConfigError(f"{path} is not a table: rtrain init supports .csv, .parquet and .json files.", hint)
    file = existing_path(path, "--dataset")
    if not file.is_file():
        raise ConfigError(f"--dataset: {path} is a folder.", "Name one of its files; the config can name the folder.")
    return source, file


def _reading(source: str, keys: Mapping[str, Any]) -> TableFormat:
    kind = load_source(source).table_format
    assert kind is not None
    made: TableFormat = kind(**keys)
    return made


def _without_header(path: str, first: Sequence[str], label: str | None) -> ConfigError:
    """Return the error that says what the columns of a file without a header are called, by their first values."""
    names = made_up_names(len(first))
    what = "is missing" if label is None else f"'{label}' is not a column"
    shown = [f"{name} ({value.strip()})" for name, value in zip(names, first, strict=True)]
    columns = shown if len(shown) <= MOST_SHOWN else [*shown[: MOST_SHOWN - 1], "...", shown[-1]]
    hint = f"Its columns, with the values of the first line: {', '.join(columns)}"
    return ConfigError(f"--label: the column to predict {what}. {path} has no header: it starts with data.", hint)


def _classes(table: pa.Table, label: str, path: str) -> dict[str, int]:
    """Return the rows of each class, the commonest first; none if the label is a number to predict."""
    scan = LabelScan(label, "auto")
    scan.add(table[label], path, 0)
    labels = scan.labels()
    if labels.classes is None:
        return {}
    counts = np.bincount(labels.encode(table[label], path, 0), minlength=len(labels.classes)).tolist()
    return dict(sorted(zip(labels.class_names, counts, strict=True), key=lambda one: -one[1]))


def _beside(path: str, names: Sequence[str], label: str, reading: TableFormat) -> tuple[dict[str, str], list[str]]:
    """Return the files next to a ``train`` file that hold other rows, by split, and those that lack only the label."""
    splits: dict[str, str] = {}
    unlabelled: list[str] = []
    file = expanded(path)
    for word, split in SPLIT_NAMES.items():
        other = file.with_name(file.name.replace("train", word))
        if "train" not in file.name or split == "train" or split in splits or not other.is_file():
            continue
        try:
            there = set(reading.schema(other).names)
            is_labelled = label in there and _has_labels(reading, other, label)
        except DatasetError:
            continue  # another kind of file, which has only such a name
        shown = str(Path(path).with_name(other.name))
        if is_labelled and there >= set(names):
            splits[split] = shown
        elif not is_labelled and there >= set(names) - {label}:
            unlabelled.append(shown)
    return splits, unlabelled


def _has_labels(reading: TableFormat, file: Path, label: str) -> bool:
    """Return whether any row of a file has a label; those of a competition have an empty column."""
    labels = reading.read(file, [label])[label]
    return bool(labels.null_count < len(labels))
