"""Reference results on public data sets, run by ``make test-all``.

The data is not part of the project: ``RTRAIN_TEST_DATA`` names a folder with ``mnist/`` (the four IDX files),
``tinyshakespeare/input.txt``, ``california-housing/housing.csv``, ``xgboost-demo/`` and ``lightgbm-examples/`` (both as
in the repositories of XGBoost and LightGBM). What is not there is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

VARIABLE = "RTRAIN_TEST_DATA"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder as slow."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def data() -> Callable[[str], Path]:
    """Return a file or folder of the test data, e.g. ``data("mnist")``; skip the test where it is missing."""

    def find(name: str) -> Path:
        root = os.environ.get(VARIABLE)
        if root is None:
            pytest.skip(f"set {VARIABLE} to the folder that holds {name}")
        path = Path(root) / name
        if not path.exists():
            pytest.skip(f"{path} is not there")
        return path.resolve()

    return find
