"""A model of the user's that fails inside a framework: the screen shows its own message and the user's own lines."""

import re
from pathlib import Path

import pytest

from rtrain.cli.app import run

LIGHTNING = """
import lightning.pytorch as pl
import torch

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)

    def training_step(self, batch, index):
        return self.compute(batch, {"rows": 1}["rows" if index < 3 else "row"])

    def compute(self, batch, scale):
        x, y = batch
        return scale * torch.nn.functional.cross_entropy(self.layer(x.flatten(1)), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
KERAS = """
import keras

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat, self.layer = keras.layers.Flatten(), keras.layers.Dense(10)

    def call(self, rows):
        return self.rescale(self.layer(self.flat(rows)))

    def rescale(self, output):
        return output / {"scale": 2}["scales"]
"""
FAILING = {
    "lightning": (
        LIGHTNING,
        "{module: {_target_: own_model.Module}}",
        """
error: KeyError: 'row'
  --> own_model.py:11:36 in training_step
  >   11 | return self.compute(batch, {"rows": 1}["rows" if index < 3 else "row"])
         |                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  more frames: 30 (22 of lightning, 4 of torch, 4 of rtrain)
The full traceback is in RUN/logs/worker-0.log
""",
    ),
    "tensorflow": (
        KERAS,
        "{model: {_target_: own_model.Net}, optimizer: {_target_: keras.optimizers.SGD}}",
        """
error: trainer.model: own_model.Net fails with rows of numbers of shape (8, 8, 1) of digits: KeyError: scales
  --> failing.yaml:2:11
       1 | defaults: [trainer: tensorflow, dataset: digits]
  >    2 | trainer: {model: {_target_: own_model.Net}, optimizer: {_target_: keras.optimizers.SGD}}
         |           ^^^^^
  --> own_model.py:13:25 in rescale
  >   13 | return output / {"scale": 2}["scales"]
         |                 ^^^^^^^^^^^^^^^^^^^^^^
  --> own_model.py:10:16 in call
  >   10 | return self.rescale(self.layer(self.flat(rows)))
         |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
    ),
}


@pytest.mark.parametrize("trainer", FAILING)
def test_a_model_that_fails_is_shown_with_its_own_lines(trainer, tmp_path, monkeypatch, capsys):
    code, keys, screen = FAILING[trainer]
    (tmp_path / "own_model.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "own_model", raising=False)
    Path("failing.yaml").write_text(f"defaults: [trainer: {trainer}, dataset: digits]\ntrainer: {keys}\n")
    run(["fit", "failing.yaml", "num_workers=0", "trainer.max_epochs=1"])
    error = re.sub(r"runs/failing/[\w-]+", "RUN", capsys.readouterr().err)
    found = error[error.index("error: ") :].split("\n")
    assert "\n".join(line.rstrip() for line in found).startswith(screen.lstrip("\n")), error
