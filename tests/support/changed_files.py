"""Runs programs that use changed files of models: a crash, which would end the tests, is theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def used_without_a_crash(program: Path, seed: int, number: int) -> int:
    """Run a program that uses ``number`` changed files of each kind, and return what it counts in its last word.

    Its last line says what it did when it was killed.
    """
    command = [sys.executable, program, str(seed), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout.splitlines()[-1:], done.stderr[-2000:])
    return int(done.stdout.split()[-1])
