"""The files that Hydra writes into ``.hydra`` when a run begins: written again where they are deleted meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.filesystem.plain_files import make_inside, read_text

FOLDER = ".hydra"
NAMES = ("config.yaml", "hydra.yaml", "overrides.yaml")


def read_hydra_files(run_dir: Path) -> dict[str, str]:
    """Return the text of each file by its name; nothing where the config has Hydra write none."""
    there = [name for name in NAMES if (run_dir / FOLDER / name).exists()]
    return {name: read_text(run_dir, f"{FOLDER}/{name}") for name in there}


def restore_hydra_files(run_dir: Path, files: Mapping[str, str]) -> None:
    """Write those files that are missing."""
    for name, text in files.items():
        path = run_dir / FOLDER / name
        if not path.exists():
            make_inside(run_dir, FOLDER)
            write_atomic(path, text)
