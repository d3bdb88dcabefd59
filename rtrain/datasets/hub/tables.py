"""Tables of Hugging Face data sets: in memory, or streamed from the Arrow files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.datasets.base import Dataset
from rtrain.datasets.hub.files import files_of, why_resident
from rtrain.datasets.hub.labels import ClassNumbers, feature_classes, labelled, numbers_of
from rtrain.datasets.memory import MemoryChoice, choose_memory
from rtrain.datasets.tables.adjusted import AdjustedFormat
from rtrain.datasets.tables.arrow import load_arrow
from rtrain.datasets.tables.formats.arrow import ArrowFormat
from rtrain.datasets.tables.load import FileTable, load_stream
from rtrain.datasets.tables.predict_rows import spec_of
from rtrain.datasets.tables.spec import row_bytes

Files = Mapping[str, Sequence[str]]
"""The files of each split."""


def load_hub_table(parts: Mapping[str, Any], conf: Any) -> Dataset:
    """Return the dataset of the tables of each split.

    Args:
        parts: The splits.
        conf: The conf of the source.

    Raises:
        DatasetError: A column is missing or unusable, or the rows can't live where the conf says.
    """
    files = {split: files_of(part, part.column_names) for split, part in parts.items()}
    num_features = len(conf.features or parts["train"].column_names)
    num_bytes = sum(map(len, parts.values())) * row_bytes(conf.dtype, num_features)
    choice = choose_memory(conf.memory, num_bytes, why_resident(files, conf.path))
    load = _resident if choice.memory == "resident" else _streamed
    dataset = load(parts, files, conf, choice)
    inputs = spec_of(dataset.encoding, conf).inputs
    return replace(dataset, encoding={**dataset.encoding, "feature_classes": feature_classes(parts, inputs)})


def _resident(parts: Mapping[str, Any], files: Files, conf: Any, choice: MemoryChoice) -> Dataset:
    return load_arrow("huggingface", labelled(parts, conf), conf, conf.path, choice.reason)


def _streamed(parts: Mapping[str, Any], files: Files, conf: Any, choice: MemoryChoice) -> Dataset:
    numbers = numbers_of(parts, conf)
    by_file = {file: replace(numbers[split], where=file) for split in numbers for file in files[split]}
    reading = AdjustedFormat(ArrowFormat(), Numbered(by_file)) if by_file else ArrowFormat()
    places = {split: [*map(Path, part)] for split, part in files.items()}
    return load_stream(FileTable.of("huggingface", reading, conf, places), choice)


@dataclass(frozen=True)
class Numbered:
    """Numbers the classes of each file as train does."""

    by_file: Mapping[str, ClassNumbers]

    def __call__(self, table: pa.Table, where: str, first_row: int = 0) -> pa.Table:
        """Return the table with the numbers of train, if its label is among its columns."""
        numbers = self.by_file.get(where)
        return table if numbers is None or numbers.label not in table.column_names else numbers(table, first_row)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the same columns."""
        return schema
