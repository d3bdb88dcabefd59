"""Which private names of other libraries rtrain uses: none that `private_names.yaml` doesn't explain."""

import ast
from pathlib import Path

import yaml

import rtrain

ROOT = Path(rtrain.__file__).parent
LISTED = yaml.safe_load((Path(__file__).parent / "private_names.yaml").read_text())
OURS = ("rtrain", "_typeshed", "__future__")


def is_private(name):
    return any(part.startswith("_") and not part.endswith("_") for part in name.split("."))


def is_own(owner):
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def own_names(tree):
    """Return the private names that a file of rtrain defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr


def used_names(tree):
    """Return the private names that a file uses, of modules by their whole path, of objects by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] not in OURS:
            yield from (name for one in node.names if is_private(name := f"{node.module}.{one.name}"))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.attr


def test_private_names_of_other_libraries_are_listed_with_what_they_are_needed_for():
    trees = [ast.parse(path.read_text()) for path in ROOT.rglob("*.py")]
    listed = {name for names in LISTED.values() for name in names}
    own = {name for tree in trees for name in own_names(tree)} - listed
    used = {name for tree in trees for name in used_names(tree)} - own
    assert used - listed == set(), "say in private_names.yaml what they are needed for, or do without"
    assert listed - used == set(), "no longer used: remove them from private_names.yaml"
    assert all(need for names in LISTED.values() for need in names.values())
