from __future__ import annotations

import pytest

from rtrain.datasets import memory
from rtrain.errors import DatasetError


@pytest.fixture(autouse=True)
def ten_megabytes_free(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10_000_000)


@pytest.mark.parametrize(
    ("asked", "num_bytes", "chosen"),
    [
        ("auto", 1_000_000, "resident"),
        ("auto", 5_000_000, "stream"),
        ("resident", 5_000_000, "resident"),
        ("stream", 1, "stream"),
    ],
)
def test_the_choice_follows_size_and_wish(asked, num_bytes, chosen):
    choice = memory.choose_memory(asked, num_bytes)
    assert choice.memory == chosen
    assert "10.0 MB" in choice.reason


def test_resident_data_larger_than_memory_is_refused():
    with pytest.raises(DatasetError, match=r"11.0 MB of data don't fit in 10.0 MB"):
        memory.choose_memory("resident", 11_000_000)


def test_free_memory_is_positive(monkeypatch):
    monkeypatch.undo()
    assert memory.free_bytes() > 1_000_000
