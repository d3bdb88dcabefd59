"""What the dataset tests share: building a source's conf as the config layer does, and loading it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from rtrain.datasets.base import Dataset
from rtrain.datasets.registry import confs, load_source

Load = Callable[..., Dataset]


@pytest.fixture
def load() -> Load:
    """Return a function that loads a source by name from its keys."""

    def load(name: str, /, **keys: Any) -> Dataset:
        return load_source(name).load(TypeAdapter(confs()[name]).validate_python(keys))

    return load
