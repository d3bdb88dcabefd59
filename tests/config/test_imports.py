"""Composing is light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = {"ray", "torch", "numpy", "pandas", "typer"}


def test_composing_checking_and_showing_import_no_framework(project):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from small_project import SCHEMAS
from rtrain.config.session import Session
with Session("digits", ["optimizer=adamw"], SCHEMAS) as session:
    session.show_cfg("job")
    session.show_info("all")
    session.check()
print({HEAVY!r} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
