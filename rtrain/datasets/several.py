"""Several data sets for a train loop, each found by its own name: the section ``datasets``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from rtrain.datasets.base import Dataset, DatasetInfo, Source
from rtrain.errors import DatasetError


def load_several(load: Mapping[str, Callable[[], Dataset]]) -> Dataset:
    """Return one dataset whose splits are data sets.

    Args:
        load: Loads each data set by its name: all its rows are the split ``train``.

    Raises:
        DatasetError: One can't be read; the keys in the message are those of ``datasets``.
    """
    found = {name: _named(name, one) for name, one in load.items()}
    parts = {name: dataset.info for name, dataset in found.items()}
    digest = sha256("".join(f"{name} {info.fingerprint}\n" for name, info in sorted(parts.items())).encode())
    streamed = [name for name, info in parts.items() if info.memory == "stream"]
    info = DatasetInfo(
        name=", ".join(parts),
        task="",
        input_shape=(),
        num_classes=None,
        num_rows={name: info.num_rows["train"] for name, info in parts.items()},
        num_skipped=sum(info.num_skipped for info in parts.values()),
        fingerprint=digest.hexdigest(),
        memory="stream" if streamed else "resident",
        memory_reason="; ".join(f"{name}: {info.memory_reason}" for name, info in parts.items()),
        parts={name: _facts(info) for name, info in parts.items()},
    )
    return Dataset(info, {name: dataset.splits["train"] for name, dataset in found.items()})


def load_part(source: Source, conf: Any) -> Dataset:
    """Return all rows of one data set: with its own columns where it has some, else ``x`` and ``y``.

    Raises:
        DatasetError: It can't be read, or is to be split.
    """
    if source.WholeConf is not None:
        return source.load_whole(conf)
    split = getattr(conf, "split", None)
    if split is not None:
        if split.val or split.test:
            raise DatasetError("dataset.split has no effect: each data set of several is one shard.", "Leave it out.")
        split.val = split.test = 0.0
    return source.load(conf)


def _named(name: str, load: Callable[[], Dataset]) -> Dataset:
    try:
        return load()
    except DatasetError as error:
        raise DatasetError(_with_key(error.message, name), error.hint and _with_key(error.hint, name)) from error


def _with_key(text: str, name: str) -> str:
    """Return what a source says about the keys of ``dataset`` as it is for one data set of several."""
    text = re.sub(r"\bdataset\.(?=[a-z])", f"datasets.{name}.", text)
    return re.sub(r"\bdataset(?==)", f"datasets.{name}.type", text)


def _facts(info: DatasetInfo) -> dict[str, Any]:
    """Return a data set's entry in the manifest."""
    columns = dict(info.own_columns) or {"x": f"{info.dtype} {list(info.input_shape)}", "y": ""}
    return {"source": info.name, "columns": columns, "fingerprint": info.fingerprint, "memory": info.memory}
