"""Keys of configs that the docs name in the middle of a sentence, or in a command, are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import rtrain
from rtrain.config.reference.all_keys import OF_PLUGINS
from rtrain.config.reference.key_docs import key_docs
from rtrain.config.schema import RtrainConf
from rtrain.schemas import schemas

ROOT = Path(rtrain.__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"`([^`\n]+)`|^ {4}(.+)$", re.MULTILINE)
NAMED = re.compile(
    r"(?<![\w./-])((?:trainer|dataset|run|scaling|cluster|sweep|smoke)(?:\.[a-z_][a-z0-9_]*)+)(?![\w(/-]|\.[A-Za-z])"
)
NO_KEYS = {
    "of a Run in Python": {"run.best_checkpoint", "run.metrics", "run.status", "run.stop", "run.folder"},
    "of a Trainer in a script": {"trainer.fit"},
    "of the manifest": {"dataset.num_skipped", "dataset.fingerprint"},
    "of the example's plugin": {"dataset.distance"},
}
FILES = (".json", ".py", ".xml", ".yaml")


@cache
def known():
    """All keys, and the sections that they stand in."""
    keys = {key.name for key in key_docs(RtrainConf)} | {f"{group.replace('/', '.')}.type" for group in OF_PLUGINS}
    for group in OF_PLUGINS:
        for conf in schemas().group(group).values():
            keys |= {f"{group.replace('/', '.')}.{key.name}" for key in key_docs(conf)}
    parts = [key.split(".") for key in keys]
    return keys, {".".join(one[:place]) for one in parts for place in range(2, len(one))}


def is_known(key):
    """Whether a key is there, or stands in a key whose mapping is the user's own."""
    keys, sections = known()
    parts = key.split(".")
    free = any(".".join(parts[:place]) in keys for place in range(2, len(parts)))
    return key in keys | sections or free or key.endswith(FILES) or any(key in names for names in NO_KEYS.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_no_key_that_is_not_there(page):
    named = {key for code in CODE.findall(page.read_text()) for key in NAMED.findall("".join(code))}
    assert {key for key in named if not is_known(key)} == set()


def test_a_key_that_is_not_there_is_noticed():
    assert not is_known("run.checkpoint.mode")
    assert not is_known("trainer.epochs")
    assert is_known("trainer.model.hidden")
    assert is_known("run.checkpoint")
