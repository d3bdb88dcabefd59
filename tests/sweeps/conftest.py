"""A folder with the config of a tiny sweep."""

from pathlib import Path

import pytest
from tiny_sweeps import CONFIG


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that holds ``tiny.yaml``."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(CONFIG)
    return tmp_path
