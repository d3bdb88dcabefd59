"""Each benchmark runs, on next to nothing: one that crashes would be noticed by nobody until it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest
from run import SUITES

BENCHMARKS = Path(__file__).with_name("run.py")
ON_RAY = ("whole", "boosting", "recovery", "sweeps", "many")
"""Start clusters, and so do their peers."""
MINUTES = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("suite", [pytest.param(name, marks=MINUTES if name in ON_RAY else []) for name in SUITES])
def test_a_benchmark_runs_and_prints_what_it_found(suite, tmp_path):
    command = [sys.executable, str(BENCHMARKS), suite, "--smoke"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "goal" in done.stdout
