"""What ``import rtrain`` offers."""

from __future__ import annotations

import subprocess
import sys

import rtrain


def test_tab_completes_the_public_names_alone():
    assert dir(rtrain) == sorted(rtrain.__all__)
    assert {"fit", "sweep", "resume", "predict", "evaluate", "runs", "Run"} <= set(dir(rtrain))


def test_every_public_name_is_there():
    assert all(getattr(rtrain, name) is not None for name in dir(rtrain))


def test_completion_stays_the_same_once_names_were_used():
    code = "import rtrain; before = dir(rtrain); rtrain.fit, rtrain.Run, rtrain.runs; print(before == dir(rtrain))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "True"
