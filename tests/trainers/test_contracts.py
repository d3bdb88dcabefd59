"""No trainer of rtrain's own is without its contract."""

import ast
from pathlib import Path

from rtrain.trainers.registry import packages


def contracts(file):
    """Yield which trainers the contracts of a file of tests are for."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef) and "TrainerContract" in map(ast.unparse, node.bases):
            keys = {ast.unparse(line.targets[0]): line.value for line in node.body if isinstance(line, ast.Assign)}
            yield ast.literal_eval(keys["trainer"])


def test_each_trainer_is_held_to_the_contract_by_its_own_tests():
    own = {name for name, package in packages().items() if package.startswith("rtrain.")}
    folder = Path(__file__).parent
    assert own == {name for name in own for file in (folder / name).glob("test_*.py") if name in contracts(file)}
