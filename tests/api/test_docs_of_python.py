"""docs/python.md: calls that ask for the same do, and its functions are those of rtrain."""

from __future__ import annotations

import re
from pathlib import Path

import rtrain

DOCS = (Path(rtrain.__file__).parents[1] / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)


def test_the_four_calls_that_ask_for_the_same_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [one for one in BLOCKS if one.count("rtrain.fit") == 4]
    exec(block, {"rtrain": rtrain})
    assert len({one.manifest.config_hash for one in rtrain.runs()}) == 1


def test_functions_on_the_page_are_public():
    assert set(re.findall(r"rtrain\.([a-z_]+)\(", DOCS)) <= set(dir(rtrain))
