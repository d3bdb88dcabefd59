"""How many faults of each kind, and the run that was not hurt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import AtChange, Child, run_dirs

FEW = 1
NUM_FAULTS = int(os.environ.get("RTRAIN_TEST_FAULTS", FEW))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat each test that takes a ``seed``; ``make test-faults`` asks for more than a few."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(NUM_FAULTS))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A run that nothing happened to, and the number of changes that it made to its files."""
    folder = tmp_path_factory.mktemp("whole")
    counted = folder.with_name("changes")
    assert Child(folder, at=AtChange(0, counted=str(counted))).wait() == 0, Path(f"{folder}.log").read_text()
    return run_dirs(folder)[0], counted.stat().st_size
