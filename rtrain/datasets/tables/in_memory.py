"""From decoded tables to a dataset in memory: what files and Arrow tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.base import Columns, Dataset, concatenated
from rtrain.datasets.conf import ColumnsConf, TableSplitConf
from rtrain.datasets.in_memory import Content, resident_dataset
from rtrain.datasets.labels import Labels, LabelScan
from rtrain.datasets.mean_std import Moments
from rtrain.datasets.splitting.by_column import SplitKeys, check_times, split_table
from rtrain.datasets.splitting.left_out import read_each
from rtrain.datasets.splitting.shares import ROW
from rtrain.datasets.tables.categories import CategoryScan, is_declared, is_text, seen_only, tell_of_names, unscaled
from rtrain.datasets.tables.column_roles import Roles, grouped
from rtrain.datasets.tables.column_types import check_alike
from rtrain.datasets.tables.predict_rows import encoding_of
from rtrain.datasets.tables.preprocessing import Preprocessing, fit, taken_columns
from rtrain.datasets.tables.preprocessor_conf import TEXT_STEPS
from rtrain.datasets.tables.spec import TableSpec

Tables = Mapping[str, Sequence[tuple[str, "pa.Table"]]]
"""The tables of each split, with what to call them in messages."""


def resident_table(name: str, tables: Tables, features: tuple[str, ...], conf: ColumnsConf, reason: str) -> Dataset:
    """Return the dataset of these rows.

    Args:
        name: Of the source.
        tables: The rows of each split that the data brings itself; ``train`` is among them, none is empty.
        features: Columns to predict from, as ``choose_features`` gives them.
        conf: How columns are taken and rows are split.
        reason: Why they are in memory.

    Raises:
        DatasetError: A value is unusable; names column and row.
    """
    every = [(where, table.schema) for part in tables.values() for where, table in part]
    check_alike(every, [*features, *([conf.group] if conf.group else []), conf.label], conf)
    check_times(every, SplitKeys.of(conf.split))
    lacking = _num_missing(tables, features)
    if not conf.preprocessors:
        dataset = _resident(name, tables, features, conf, reason)
        return replace(dataset, info=replace(dataset.info, num_missing=lacking))
    ready = _split(tables, features, conf)
    preprocessing = fit(conf.preprocessors, ready["train"], features)
    made = {
        split: [(f"{where} (of these the rows of {split})", preprocessing.apply(table, where)) for where, table in part]
        for split, part in ready.items()
    }
    dataset = _resident(name, made, preprocessing.features, _conf_after(conf, made, preprocessing), reason)
    info = replace(dataset.info, num_missing=lacking)
    return replace(dataset, info=info, encoding={**dataset.encoding, "preprocessing": asdict(preprocessing)})


def _num_missing(tables: Tables, features: Sequence[str]) -> dict[str, int]:
    """Return how many values of the features are missing, of those that lack some."""
    every = [table for part in tables.values() for _, table in part]
    missing = {name: [pc.is_null(table[name], nan_is_null=True) for table in every] for name in features}
    counts = {name: sum(pc.sum(one).as_py() or 0 for one in found) for name, found in missing.items()}
    return {name: count for name, count in counts.items() if count}


def _resident(name: str, tables: Tables, features: tuple[str, ...], conf: ColumnsConf, reason: str) -> Dataset:
    spec = _scanned(tables["train"], features, conf)
    keys = SplitKeys.of(conf.split)
    parts = read_each(tables, lambda part: grouped(_decoded(spec, keys, part)))
    task = task_of(spec.labels, conf)
    splits = split_table(parts, keys, conf, task == "classification")
    splits, categories = seen_only(splits, features, dict(spec.categories))
    tell_of_names(categories, len(splits["train"]["y"]), conf)
    spec = replace(spec, categories=categories)
    if spec.on_missing == "mean":
        moments = Moments()
        moments.add(splits["train"]["x"])
        spec = spec.filled(unscaled(moments.statistics[0], features, categories, float("nan")))
        splits = {split: {**part, "x": spec.fill_missing(part["x"])} for split, part in splits.items()}
    content = Content(
        name=name,
        task=task,
        class_names=spec.labels.class_names,
        feature_names=features,
        memory_reason=reason,
    )
    dataset = resident_dataset(splits, content, conf)
    info = replace(
        dataset.info,
        categories=categories,
        missing=tuple(name for name in dataset.info.missing if name not in categories),
        target_dtype=spec.labels.targets.dtype,
        merged_targets=spec.labels.targets.merged,
        mean=unscaled(dataset.info.mean, features, categories, 0.0),
        std=unscaled(dataset.info.std, features, categories, 1.0),
    )
    return Dataset(info, dataset.splits, encoding_of(spec.decided(info.missing), task, conf.dtypes or {}))


def task_of(labels: Labels, conf: ColumnsConf) -> str:
    """Return what is learned: a ranking only where the config says so."""
    return "ranking" if conf.task == "ranking" else labels.task


def label_scan(conf: ColumnsConf) -> LabelScan:
    """Return what looks at the labels; the grades of a ranking are numbers."""
    return LabelScan(conf.label, "regression" if conf.task == "ranking" else conf.task)


def _split(tables: Tables, features: Sequence[str], conf: ColumnsConf) -> Tables:
    """Return the rows of each split as they are: the same ones as without preprocessors."""
    plain = [name for name in features if not _is_document(name, tables["train"], conf)]
    asked = [name for name in plain if _is_category(name, tables["train"]) or name in (conf.categorical or ())]
    spec = _scanned(tables["train"], tuple(plain), replace(conf, categorical=asked, on_missing="keep"))
    keys = SplitKeys.of(conf.split)
    parts, begin = {}, 0
    for split, part in tables.items():
        decoded = _decoded(spec, keys, part)
        parts[split] = grouped({**decoded, ROW: begin + np.arange(len(decoded["y"]))})
        begin += len(decoded["y"])
    splits = split_table(parts, keys, conf, task_of(spec.labels, conf) == "classification")
    every = [one for part in tables.values() for one in part]
    return {split: _rows(every, np.sort(part[ROW])) for split, part in splits.items()}


def _is_document(name: str, train: Sequence[tuple[str, pa.Table]], conf: ColumnsConf) -> bool:
    """Return whether a column holds lists or texts that a preprocessor takes apart, and so names no row."""
    parted = taken_columns([step for step in conf.preprocessors if step["type"] in TEXT_STEPS])
    return name in parted or any(pa.types.is_nested(table.schema.field(name).type) for _, table in train)


def _is_category(name: str, train: Sequence[tuple[str, pa.Table]]) -> bool:
    kinds = [table.schema.field(name).type for _, table in train]
    return any(is_text(kind) or is_declared(kind) for kind in kinds)


def _rows(every: Sequence[tuple[str, pa.Table]], rows: np.ndarray) -> list[tuple[str, pa.Table]]:
    """Return some rows of tables, numbered through all of them; tables that have none are left out."""
    found, begin = [], 0
    for where, table in every:
        end = begin + table.num_rows
        chosen = rows[(rows >= begin) & (rows < end)] - begin
        begin = end
        if len(chosen):
            found.append((where, table.take(chosen)))
    return found


def _conf_after(conf: ColumnsConf, splits: Tables, preprocessing: Preprocessing) -> ColumnsConf:
    """Return what is left to do once rows are split and preprocessed."""
    val, test = (None if split in splits else 0.0 for split in ("val", "test"))
    kept = None if conf.categorical is None else [name for name in conf.categorical if name in preprocessing.features]
    split = TableSplitConf(val=val, test=test)
    return replace(conf, preprocessors=[], split=split, sample=1.0, limit=None, categorical=kept)


def _scanned(train: Sequence[tuple[str, pa.Table]], features: tuple[str, ...], conf: ColumnsConf) -> TableSpec:
    labels, categories = label_scan(conf), CategoryScan(features, conf.categorical, conf.untyped)
    for where, table in train:
        labels.add(table[conf.label], where, 0)
        categories.add(table, where)
    return TableSpec(
        features=features,
        labels=labels.labels(),
        on_missing=conf.on_missing,
        dtype=conf.dtype,
        categories=categories.categories(),
        texts=categories.texts(),
        roles=Roles.of(conf),
    )


def _decoded(spec: TableSpec, keys: SplitKeys, tables: Sequence[tuple[str, pa.Table]]) -> Columns:
    return concatenated([{**spec.decode(table, where), **keys.decode(table, where)} for where, table in tables])
