"""What the dataset tests share: building a source's conf as the config layer does, and loading it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from rtrain.datasets.base import Dataset, RawChunk
from rtrain.datasets.registry import confs, load_source

Load = Callable[..., Dataset]


@pytest.fixture
def load() -> Load:
    """Return a function that loads a source by name from its keys."""

    def load(name: str, /, **keys: Any) -> Dataset:
        return load_source(name).load(TypeAdapter(confs()[name]).validate_python(keys))

    return load


@pytest.fixture
def open_rows() -> Callable[..., RawChunk]:
    """Return a function that opens new rows with the encoding of a dataset, and gives them as one chunk."""

    def open_rows(name: str, dataset: Dataset, /, with_labels: bool = False, **keys: Any) -> RawChunk:
        conf = TypeAdapter(confs()[name]).validate_python(keys)
        reader = load_source(name).open_rows(conf, json.loads(json.dumps(dataset.encoding)))
        sent = pickle.loads(pickle.dumps(reader))
        chunks = [chunk for piece in sent.pieces for chunk in sent.read(piece, with_labels)]
        x = np.concatenate([chunk.x for chunk in chunks])
        y = None if chunks[0].y is None else np.concatenate([chunk.y for chunk in chunks])
        kept = {name: [value for chunk in chunks for value in _listed(chunk.kept[name])] for name in chunks[0].kept}
        return RawChunk(x, y, kept)

    return open_rows


def _listed(values: Any) -> list[Any]:
    """Return the values of a kept column, an Arrow array or a sequence."""
    return values.to_pylist() if hasattr(values, "to_pylist") else list(values)
