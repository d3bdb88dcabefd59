"""Finds tests by name, for tables that name the test which shows something."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def exists(test):
    """Tell whether ``file::test`` or ``file::Class::test`` exists; a class may inherit it."""
    file, *classes, name = test.split("::")
    tree = ast.parse((ROOT / file).read_text())
    if not classes:
        return any(isinstance(one, ast.FunctionDef) and one.name == name for one in ast.walk(tree))
    own = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    return classes[0] in own and _has(own[classes[0]], name, own)


def _has(conf, name, own):
    if any(isinstance(one, ast.FunctionDef) and one.name == name for one in conf.body):
        return True
    bases = [base.id for base in conf.bases if isinstance(base, ast.Name)]
    return any(_has(found, name, own) for base in bases for found in _classes(base, own))


def _classes(name, own):
    if name in own:
        return [own[name]]
    texts = (file.read_text() for folder in ("tests", "rtrain/testing") for file in (ROOT / folder).rglob("*.py"))
    trees = (ast.parse(text) for text in texts if f"class {name}" in text)
    return [one for tree in trees for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name]
