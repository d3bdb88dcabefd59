"""The table of docs/train-loops.md names each script that Ray's wheel has, and each loop after Ray's guides."""

import re
from pathlib import Path

import ray.train.examples

import rtrain

ROOT = Path(rtrain.__file__).parents[1]
EXAMPLES = Path(ray.train.examples.__file__).parent
GUIDES = (ROOT / "tests" / "acceptance" / "ray_scripts" / "guides.py").read_text()
SECTION = (ROOT / "docs" / "train-loops.md").read_text().partition("\n## Ray's own scripts")[2].partition("\n## ")[0]


def test_every_script_is_named_with_what_it_does_here():
    files = [path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.py") if path.name != "__init__.py"]
    scripts = {str(path.with_suffix("")) for path in files if "horovod" not in path.parts}
    rows = set(re.findall(r"^\| `([\w/]+)`", SECTION, re.MULTILINE))
    not_run = set(re.findall(r"`([\w/]+)`", SECTION.partition("\nNot run:")[2]))
    assert len(scripts) > 8
    assert scripts - rows == {one for one in scripts if one.startswith(tuple(not_run))}
    assert {one for one in rows if not one.startswith("guides/")} <= scripts


def test_every_loop_after_a_guide_has_a_row():
    loops = re.findall(r"^def (\w+)\(config", GUIDES, re.MULTILINE)
    assert len(loops) >= 8
    assert [one for one in loops if f"| `guides/{one}` |" not in SECTION] == []
