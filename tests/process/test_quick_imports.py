"""Python looks for garbage as it always does while code of the user's runs, whatever it is."""

import subprocess
import sys

import pytest

from rtrain.process import quick_imports

OWN = """
import gc

import rtrain
from rtrain.process import quick_imports

assert gc.get_threshold() == quick_imports.USUAL


def load():
    assert gc.get_threshold() == quick_imports.USUAL
    from sklearn.datasets import load_digits

    return load_digits(as_frame=True).frame.rename(columns={"target": "y"})


class Callback(rtrain.WorkerCallback):
    def __init__(self):
        assert gc.get_threshold() == quick_imports.USUAL
"""
CODE = "import gc, rtrain.cli; first = gc.get_threshold(); rtrain.cli._begun(); print(first, gc.get_threshold())"


def test_a_command_looks_less_often_at_first():
    out = subprocess.check_output([sys.executable, "-c", CODE], text=True, timeout=60)
    assert out == f"{quick_imports.USUAL} {quick_imports.FEWER}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["dataset=python", "dataset.function=own_gc:load"],
        ["trainer.callbacks=[{_target_: own_gc.Callback}]"],
    ],
    ids=["dataset", "callback"],
)
def test_it_looks_as_usual_when_code_of_the_users_runs(tmp_path, words):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_gc.py").write_text(OWN)
    command = "import rtrain.cli, sys; sys.argv[1:] = {}; rtrain.cli.main()"
    words = ["fit", "mlp", "num_workers=0", "trainer.max_epochs=1", *words]
    done = subprocess.run(
        [sys.executable, "-c", command.format(words)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
