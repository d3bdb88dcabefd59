"""docs/data.md tells of every source, and the examples in its table are right."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest

from rtrain.datasets.registry import confs, modules

DOCS = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
EXAMPLES = re.findall(r"^\| `(\w+)` \|.*?\| `(dataset=.*?)` \|", DOCS, re.MULTILINE)


def test_every_source_has_a_line_and_in_order():
    assert [name for name, _ in EXAMPLES] == sorted(modules())


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example_uses_keys_that_there_are(name, example):
    first, *others = shlex.split(example)
    assert first == f"dataset={name}"
    conf = confs()[name]
    fields = {field.name for field in dataclasses.fields(conf)}
    keys = {word.partition("=")[0].removeprefix("+").removeprefix("dataset.").partition(".")[0] for word in others}
    assert keys <= fields
    needed = {
        field.name
        for field in dataclasses.fields(conf)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    assert needed <= keys
