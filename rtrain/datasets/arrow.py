"""From Arrow tables in memory to a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rtrain.datasets.base import Dataset
from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.labels import LabelScan
from rtrain.datasets.memory import always_resident
from rtrain.datasets.moments import Moments
from rtrain.datasets.resident import Content, resident_dataset
from rtrain.datasets.splits import split_parts
from rtrain.datasets.table_rows import describe_spec
from rtrain.datasets.tables import TableSpec, check_columns, choose_features
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa


def load_arrow(name: str, parts: Mapping[str, pa.Table], conf: ColumnsConf, where: str) -> Dataset:
    """Return the dataset of the tables in ``parts``, by split.

    Args:
        name: Of the source.
        parts: The rows of each split; ``train`` is among them.
        conf: Which columns are taken, and how.
        where: Where the rows come from, for messages.

    Raises:
        DatasetError: A column is missing or unusable; names it and the row.
    """
    places = {split: where if len(parts) == 1 else f"{where} ({split})" for split in parts}
    for split, table in parts.items():
        if not table.num_rows:
            raise DatasetError(f"{places[split]}: there are no rows.")
    features = choose_features(conf, parts["train"].schema, places["train"])
    for split, table in parts.items():
        check_columns([conf.label, *features], table.schema, places[split], "features")
    reason = always_resident(sum(table.num_rows for table in parts.values()) * (4 * len(features) + 8))
    scan = LabelScan(conf.label, conf.task)
    scan.add(parts["train"][conf.label], places["train"], 0)
    spec = TableSpec(features=features, labels=scan.labels(), on_missing=conf.on_missing)
    decoded = {split: spec.decode(table, places[split]) for split, table in parts.items()}
    content = Content(
        name=name,
        task=spec.labels.task,
        class_names=spec.labels.class_names,
        feature_names=features,
        memory_reason=reason,
    )
    splits = split_parts(decoded, conf, stratify=content.task == "classification")
    if conf.on_missing == "mean":
        moments = Moments()
        moments.add(splits["train"]["x"])
        spec = spec.filled(moments.mean)
        splits = {split: {**part, "x": spec.fill_missing(part["x"])} for split, part in splits.items()}
    return replace(resident_dataset(splits, content, conf), encoding=describe_spec(spec))
