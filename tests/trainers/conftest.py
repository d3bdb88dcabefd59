"""Let the tests of all trainers import the modules beside this file."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rtrain.testing.trainer_contract import TrainerContract

pytest.register_assert_rewrite("boosting_tests", "changed_files", "epoch_tests", "exactness", "not_finite_tests")
sys.path.insert(0, str(Path(__file__).parent))

STAND_FOR_ALL = ("TestTorch", "TestXGBoost")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let two trainers stand for all on Ray, where a test takes half a minute; two ranks without it always are."""
    for item in items:
        kind = getattr(item, "cls", None)
        is_contract = kind is not None and issubclass(kind, TrainerContract) and kind.__name__ not in STAND_FOR_ALL
        if is_contract and item.name.startswith("test_two_workers_"):
            item.add_marker(pytest.mark.slow)
