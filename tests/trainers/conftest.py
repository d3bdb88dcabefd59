"""Which tests of the contract stand for all trainers."""

from collections.abc import Sequence

import pytest

from rtrain.testing.trainer_contract import TrainerContract

STAND_FOR_ALL = ("TestTorch", "TestXGBoost")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let two trainers stand for all on Ray, where a test takes half a minute; two ranks without it always are."""
    for item in items:
        kind = getattr(item, "cls", None)
        is_contract = kind is not None and issubclass(kind, TrainerContract) and kind.__name__ not in STAND_FOR_ALL
        if is_contract and item.name.startswith("test_two_workers_"):
            item.add_marker(pytest.mark.slow)
