"""Tests that need a GPU: ``make test-gpu``. Without one each is skipped.

``RTRAIN_TEST_GPU_DEVICE=cpu`` runs them on a CPU, which tries out the tests themselves and says nothing about GPUs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

# So that a failure shows the values that it compared.
pytest.register_assert_rewrite("gpu_runs")

from gpu_runs import DEVICE  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def gpu() -> Iterator[None]:
    """Skip without a GPU. JAX takes the memory that it needs, and leaves the rest to the other frameworks.

    XLA would measure in each process which kernels are fast, and two runs would not end with the same weights.
    """
    if DEVICE == "cuda":
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no GPU")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        patch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=0", prepend=" ")
        yield


@pytest.fixture(scope="session")
def project(gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with callbacks, train loops and models of its own; runs are made in it."""
    folder = tmp_path_factory.mktemp("gpu") / "project"
    shutil.copytree(Path(__file__).parent / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text("")
    return folder
