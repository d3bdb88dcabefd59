"""A small project that is the current folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_project import FILES, write

from rtrain.config.files import locations

BUILTIN = Path(__file__).parent / "builtin"
"""Stands for the built-in configs, so that no test depends on which plugins there are."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder that is the current folder; ``sys.path`` is put back afterwards."""
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(locations, "builtin_config_dir", lambda: BUILTIN)
    for name, text in FILES.items():
        write(name, text)
    return root
