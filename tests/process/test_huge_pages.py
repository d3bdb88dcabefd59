"""Torch asks for large pages where the kernel leaves it to programs, unless the user says otherwise."""

import os
import subprocess
import sys

import pytest

from rtrain.process import huge_pages
from rtrain.process.huge_pages import ENABLED, OF_TORCH, use_huge_pages


@pytest.mark.parametrize(
    ("enabled", "given", "found"),
    [
        ("always [madvise] never", None, "1"),
        ("always [madvise] never", "0", "0"),
        ("[always] madvise never", None, None),
        ("always madvise [never]", None, None),
        (None, None, None),
    ],
)
def test_who_asks_for_them(tmp_path, monkeypatch, enabled, given, found):
    file = tmp_path / "enabled"
    if enabled is not None:
        file.write_text(enabled)
    monkeypatch.setattr(huge_pages, "ENABLED", file)
    monkeypatch.setattr(os, "environ", {} if given is None else {OF_TORCH: given})
    use_huge_pages()
    assert os.environ.get(OF_TORCH) == found


@pytest.mark.skipif(
    not ENABLED.exists() or "[madvise]" not in ENABLED.read_text(), reason="the kernel leaves it to no program"
)
def test_large_tensors_of_a_command_lie_in_them():
    code = """
import sys
from rtrain.cli import main
sys.argv = ["rtrain", "--version"]
main()
import torch
kept = torch.zeros(1 << 24)  # 64 MB
with open("/proc/self/smaps_rollup") as file:
    print(next(line.split()[1] for line in file if line.startswith("AnonHugePages")))
"""
    environment = {name: value for name, value in os.environ.items() if name != OF_TORCH}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout.split()[-1]) >= 40_000, "kB"
