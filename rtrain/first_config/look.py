"""A look at the file of a table: its columns, what the label is, and other files of the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rtrain.config.files.data_files import TABLES, kind_of
from rtrain.datasets.files import SPLIT_NAMES, existing_path
from rtrain.datasets.labels import LabelScan
from rtrain.datasets.tables.formats.csv import CsvFormat, delimiter_of
from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.datasets.tables.formats.parquet import ParquetFormat
from rtrain.datasets.tables.spec import TableFormat, check_columns
from rtrain.errors import ConfigError, DatasetError
from rtrain.first_config.columns import Column, columns_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Found:
    """What there is in a table and its folder."""

    path: str
    """The file, as typed."""
    source: str
    """The dataset that reads it, one of ``TABLES``."""
    delimiter: str
    """Between two values of a CSV file."""
    label: str
    num_rows: int
    columns: Sequence[Column]
    """All of them, the label among them."""
    classes: Mapping[str, int]
    """Rows of each class, the commonest first; empty where the label is a number to predict."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """Files in the same folder with the same columns, by the split that their name says."""
    unlabelled: Sequence[str] = ()
    """Files in the same folder that lack only the label."""

    def used(self, use: str) -> list[Column]:
        """Return the columns of one use, the label aside."""
        return [one for one in self.columns if one.use == use and one.name != self.label]


def look_at(path: str, label: str | None) -> Found:
    """Return what is in the table at ``path``, whose column ``label`` is to be predicted.

    Raises:
        ConfigError: The file is not a table, or there is no label.
        DatasetError: The file can't be read, or the label is not a column, or can't be learned.
    """
    source = kind_of(path)
    if source not in TABLES:
        hint = "Of images: rtrain fit resnet dataset=images dataset.path=FOLDER. All kinds of data: rtrain datasets"
        raise ConfigError(f"{path} is not a table: first configs are made for .csv, .parquet and .json files.", hint)
    file = existing_path(path, "--dataset")
    if not file.is_file():
        raise ConfigError(f"--dataset: {path} is a folder.", "Name one of its files; the config may name the folder.")
    delimiter = delimiter_of(file) if source == "csv" else ","
    reading = _reading(source, delimiter)
    schema = reading.schema(file)
    names = schema.names
    if label is None:
        raise ConfigError("--label: the column to predict is missing.", f"There are: {', '.join(names)}")
    check_columns([label], schema, path, "label")
    check_columns(list(dict.fromkeys(names)), schema, path, "features")
    table = reading.read(file, names)
    splits, unlabelled = _beside(path, names, label, reading)
    return Found(
        path=path,
        source=source,
        delimiter=delimiter,
        label=label,
        num_rows=table.num_rows,
        columns=list(columns_of(table)),
        classes=_classes(table, label, path),
        splits=splits,
        unlabelled=unlabelled,
    )


def _reading(source: str, delimiter: str) -> TableFormat:
    formats: dict[str, TableFormat] = {
        "csv": CsvFormat(delimiter),
        "parquet": ParquetFormat(),
        "json": JsonFormat(),
    }
    return formats[source]


def _classes(table: pa.Table, label: str, path: str) -> dict[str, int]:
    """Return the rows of each class, the commonest first; none if the label is a number to predict."""
    import numpy as np

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
    file = Path(path).expanduser()
    for word, split in SPLIT_NAMES.items():
        other = file.with_name(file.name.replace("train", word))
        if "train" not in file.name or split == "train" or split in splits or not other.is_file():
            continue
        try:
            there = set(reading.schema(other).names)
        except DatasetError:
            continue  # another kind of file, which has only such a name
        shown = str(Path(path).with_name(other.name))
        if there >= set(names):
            splits[split] = shown
        elif there >= set(names) - {label}:
            unlabelled.append(shown)
    return splits, unlabelled
