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


def tree(root, groups, listed):
    """Write a machine with 50 MB free, its control groups (limit, current, cache), and where the process is."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 99999 kB\nMemAvailable: 50000 kB\n")
    (root / "proc/self/cgroup").write_text(listed)
    for place, (limit, current, cached) in groups.items():
        folder = root / "sys/fs/cgroup" / place
        folder.mkdir(parents=True, exist_ok=True)
        first = place.startswith("memory")
        limit_name, current_name = ("limit_in_bytes", "usage_in_bytes") if first else ("max", "current")
        (folder / f"memory.{limit_name}").write_text(f"{limit}\n")
        (folder / f"memory.{current_name}").write_text(f"{current}\n")
        key = "total_inactive_file" if first else "inactive_file"
        (folder / "memory.stat").write_text(f"anon 1\n{key} {cached}\n")
    return root


UNLIMITED = 9223372036854771712


@pytest.mark.parametrize(
    ("listed", "groups", "free"),
    [
        ("", {}, 51_200_000),
        ("0::/\n", {"": (1000, 300, 50)}, 750),
        ("0::/a/b\n", {"": ("max", 9, 0), "a": ("max", 9, 0), "a/b": (1000, 300, 0)}, 700),
        ("0::/slurm/job_1/step_0\n", {"slurm/job_1": (500, 100, 0), "slurm/job_1/step_0": ("max", 100, 0)}, 400),
        ("0::/slurm/job_1/step_0\n", {"slurm/job_1": (500, 100, 0), "slurm/job_1/step_0": (200, 100, 0)}, 100),
        ("0::/not/here\n", {"": (1000, 400, 0)}, 600),
        ("0::/../../x\n", {"": (1000, 400, 0)}, 600),
        ("5:cpu:/x\n4:memory:/slurm/uid_0/job_1\n", {"memory/slurm/uid_0/job_1": (800, 300, 100)}, 600),
        ("4:cpuacct,memory:/a\n0::/\n", {"memory": (UNLIMITED, 1, 0), "memory/a": (900, 100, 0)}, 800),
        ("4:memory:/docker/id\n", {"memory": (700, 100, 0)}, 600),
        ("0::/a\n", {"a": (100, 400, 0)}, 0),
        ("0::/a\n", {"b": (1, 0, 0)}, 51_200_000),
    ],
)
def test_every_limit_around_the_process_counts(monkeypatch, tmp_path, listed, groups, free):
    monkeypatch.undo()
    assert memory.free_bytes(tree(tmp_path, groups, listed)) == free
