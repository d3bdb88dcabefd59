"""Texts of Hugging Face data sets: in memory, or in the Arrow files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.datasets.base import Dataset
from rtrain.datasets.files import files_fingerprint
from rtrain.datasets.hub.files import arrow_column, why_resident
from rtrain.datasets.hub.labels import labelled
from rtrain.datasets.memory import choose_memory
from rtrain.datasets.on_disk.arrow_column import ArrowColumn, mapped_column
from rtrain.datasets.on_disk.made_once import identity
from rtrain.datasets.splitting.by_column import SplitKeys
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.load import BYTES_PER_BYTE, load_text_tables
from rtrain.datasets.texts.mapped import TextFiles, load_mapped_texts
from rtrain.datasets.texts.read import Texts, check_texts


def load_hub_texts(parts: Mapping[str, Any], conf: TextConf, memory: str) -> Dataset:
    """Return the dataset of the texts of each split.

    Args:
        parts: The splits.
        conf: Names the columns.
        memory: Where the texts live, as the config says.

    Raises:
        DatasetError: A column is unusable, or texts can't live there.
    """
    import datasets

    columns = {split: arrow_column(part, conf.text) for split, part in parts.items()}
    why = why_resident({split: column.files for split, column in columns.items()}, conf.path)
    if any(not isinstance(part.features.get(conf.text), datasets.Value) for part in parts.values()):
        why = f"'{conf.text}' has lists of words, which are held in memory"
    size = sum(part.data.nbytes for part in parts.values()) * BYTES_PER_BYTE["none"]
    choice = choose_memory(memory, size, why)
    if choice.memory == "resident":
        return load_text_tables("huggingface", labelled(parts, conf), conf, choice.reason)
    return load_mapped_texts("huggingface", _files(columns, parts, conf), conf, choice.reason)


def _files(columns: Mapping[str, ArrowColumn], parts: Mapping[str, Any], conf: TextConf) -> dict[str, TextFiles]:
    found = {}
    for split, table in labelled(parts, conf, others=SplitKeys.of(conf.split).columns).items():
        column, where = columns[split], f"{conf.path} ({split})"
        check_texts(mapped_column(column.files, column.name), column.name, where)
        labels = None if conf.label is None else table[conf.label].combine_chunks()
        kept = {name: table[name] for name in table.column_names if name != conf.label}
        rows = Texts(where, np.arange(len(parts[split])), labels, kept)
        places = [*map(Path, column.files)]
        found[split] = TextFiles(column, [rows], files_fingerprint(places), identity(places))
    return found
