"""From targets in memory and inputs that stay in files to a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rtrain.datasets.arrays.load import Arrays, Names, scanned, targets
from rtrain.datasets.base import Dataset, DatasetInfo
from rtrain.datasets.checked_columns import check_finite
from rtrain.datasets.conf import RowsConf
from rtrain.datasets.files import files_fingerprint
from rtrain.datasets.mean_std import Moments, given_statistics
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.datasets.splitting.shares import split_parts

MakeSplit: TypeAlias = "Callable[[str, np.ndarray, np.ndarray], MappedSplit]"
"""Makes a split of the name of the part that has its rows, their numbers there, and their targets."""


@dataclass(frozen=True, kw_only=True)
class OnDisk:
    """Inputs that stay in files."""

    make: MakeSplit
    files: Sequence[Path]
    reason: str
    """Why the rows are not in memory."""
    statistics_rows: int
    """Rows of train that ``normalize: true`` looks at."""


def mapped_dataset(parts: Mapping[str, Arrays], on_disk: OnDisk, names: Names, conf: RowsConf, task: str) -> Dataset:
    """Return the dataset of ``parts``, by split, split and normalized as ``conf`` says.

    Args:
        parts: The targets; of the inputs, only their number is asked for.
        on_disk: Where the inputs are.
        names: Names of the source, the label and the classes.
        conf: What the config says.
        task: What to learn; auto: by the targets.

    Raises:
        DatasetError: The targets can't be learned from, or an input can't be read.
    """
    labels = scanned(parts, names.label, task)
    rows = {split: {"y": targets(part, labels), "row": np.arange(len(part.x))} for split, part in parts.items()}
    chosen = split_parts(rows, conf, stratify=labels.classes is not None)
    splits = {
        split: on_disk.make(split if split in parts else "train", part["row"], part["y"])
        for split, part in chosen.items()
    }
    example = splits["train"].columns(np.arange(1))["x"]
    first = example[0]
    statistics = given_statistics(conf.normalize, len(first))
    missing: tuple[str, ...] = ()
    if statistics is None:
        check = partial(check_finite, where=f"{parts['train'].where}: ", names=names.features)
        moments = _moments(splits["train"], on_disk.statistics_rows, check, chosen["train"]["row"])
        statistics, missing = (moments.mean, moments.std), moments.missing(names.features)
    info = DatasetInfo(
        name=names.source,
        task=labels.task,
        input_shape=first.shape,
        dtype=str(first.dtype),
        original_sizes=example.dtype == object,
        num_classes=labels.num_classes,
        class_names=labels.class_names,
        feature_names=names.features,
        num_rows={name: split.num_rows for name, split in splits.items()},
        fingerprint=files_fingerprint(on_disk.files),
        missing=missing,
        target_dtype=labels.targets.dtype,
        merged_targets=labels.targets.merged,
        memory="stream",
        memory_reason=f"{on_disk.reason}; mapped from disk",
        mean=statistics[0],
        std=statistics[1],
    )
    shape = list(info.input_shape)
    encoding = {"task": labels.task, "label": names.label, **labels.encoding, "input_shape": shape, "dtype": info.dtype}
    return Dataset(info, splits, encoding)


def _moments(split: MappedSplit, max_rows: int, check: Callable[..., None], in_file: np.ndarray) -> Moments:
    """Return mean and standard deviation of ``max_rows`` rows, evenly spread, once they are checked."""
    moments = Moments()
    chosen = np.arange(0, split.num_rows, max(1, -(-split.num_rows // max_rows)))
    for start in range(0, len(chosen), split.chunk_rows):
        rows = chosen[start : start + split.chunk_rows]
        x = split.columns(rows)["x"]
        check(x, row_of=in_file[rows].__getitem__)
        moments.add(x)
    return moments
