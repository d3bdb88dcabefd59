"""A checkpoint of several ranks holds what every rank wrote, also where files of others are seen late."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rtrain.errors import CheckpointError
from rtrain.runs import checkpoints
from rtrain.trainers import sharded_checkpoint

FACTS = {"step": 1, "epoch": 0, "metrics": {}, "score": None}


class Threads:
    """Ranks that are threads; each knows its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.own = threading.local()
        self._barrier = threading.Barrier(number, timeout=30)
        self._given: dict[int, Any] = {}

    def gather(self, value: Any) -> list[Any]:
        self._given[self.own.rank] = value
        self._barrier.wait()
        given = [self._given[rank] for rank in range(self.number)]
        self._barrier.wait()
        return given

    def save(self, target: Path) -> list[Any]:
        """Write a checkpoint; return each rank's record or error."""

        def rank(number: int) -> Any:
            self.own.rank = number

            def write(folder: Path) -> None:
                (folder / "shards").mkdir(exist_ok=True)
                (folder / "shards" / f"{number}.bin").write_bytes(b"x" * (number + 1))

            try:
                return sharded_checkpoint.write_shards(target, write, FACTS, self, first=number == 0)
            except CheckpointError as error:
                return error

        with ThreadPoolExecutor(self.number) as pool:
            return list(pool.map(rank, range(self.number)))


@pytest.fixture
def late(monkeypatch):
    """The times that the first rank still sees one file of the second less, or less of it."""
    left = {"missing": 0, "short": 0}
    ranks = Threads(2)
    true = sharded_checkpoint.sizes_below

    def seen(folder: Path) -> dict[str, int]:
        found = true(folder)
        if ranks.own.rank == 0 and left["missing"] > 0:
            left["missing"] -= 1
            found.pop("shards/1.bin")
        elif ranks.own.rank == 0 and left["short"] > 0:
            left["short"] -= 1
            found["shards/1.bin"] = 1
        return found

    monkeypatch.setattr(sharded_checkpoint, "sizes_below", seen)
    monkeypatch.setattr(sharded_checkpoint, "PAUSE_SECONDS", 0.001)
    return ranks, left


@pytest.mark.parametrize("how", ["missing", "short"])
def test_files_that_come_late_are_waited_for(tmp_path, late, how):
    ranks, left = late
    left[how] = 4
    first, second = ranks.save(tmp_path / "checkpoint")
    assert second is None
    assert {name: file["size_bytes"] for name, file in first["files"].items()} == {"shards/0.bin": 1, "shards/1.bin": 2}


@pytest.mark.parametrize("how", ["missing", "short"])
def test_without_the_files_of_every_rank_there_is_no_checkpoint(tmp_path, late, how, monkeypatch):
    ranks, left = late
    left[how] = 10**9
    monkeypatch.setattr(sharded_checkpoint, "PATIENCE_SECONDS", 0.05)
    for error in ranks.save(tmp_path / "checkpoint"):
        assert "shards/1.bin" in str(error)
    assert not list(tmp_path.iterdir())


def test_each_folder_of_a_checkpoint_is_synced(tmp_path, monkeypatch):
    synced = []
    true = checkpoints.sync_directory
    monkeypatch.setattr(checkpoints, "sync_directory", lambda path: synced.append(path) or true(path))

    def write(folder: Path) -> None:
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "c").write_bytes(os.urandom(3))

    checkpoints.write_checkpoint(tmp_path / "checkpoint", write, FACTS)
    assert {path.name for path in synced} >= {"a", "b"}
