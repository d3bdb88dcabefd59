"""docs/coming-from.md: what it says of another tool's name is where rtrain leads who types that name."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "coming-from.md").read_text()
ROWS = [line.split("\t") for line in (HERE / "words_of_other_tools.tsv").read_text().splitlines() if "\t" in line]
SAME = {"max_epochs", "max_steps", "train_loop_config"}
"""Names that rtrain has too."""


def told(section):
    """Return the pairs of a section's table: a name of the other tool, and what stands next to it."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for left, right in re.findall(r"^\| (.*?) \| (.*?) \|$", text, re.MULTILINE):
        yield from ((name, right) for name in re.findall(r"`([a-z_.]+)`", left))


def leads_to(name, right):
    """Whether the tested words have the name, and lead to a key that stands next to it."""
    found = [row[5] for row in ROWS if row[3] == name]
    return any(re.search(rf"`{re.escape(key)}`", right) for one in found for key in re.findall(r"[\w.]+", one))


def test_a_name_leads_where_the_page_says():
    pairs = [pair for section in ("Lightning", "Hugging Face Trainer", "Ray Train") for pair in told(section)]
    names = {name for name, _ in pairs if "_" in name or "." in name} - {"class_path", "init_args"} - SAME
    assert len(names) > 25
    assert {name for name, right in pairs if name in names and not leads_to(name, right)} == set()
