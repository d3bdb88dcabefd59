"""Whoever uses a checkpoint after the code of its model was edited is told, in git and outside of it."""

from __future__ import annotations

import shutil

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.trainers.named_code import changed_code, named_code

NETS = """
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, num_classes))

    def forward(self, x):
        return self.layers(x)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of a model of the user's, in a project outside of git."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "edited_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    model = {"_target_": "edited_nets.Net", "num_classes": "auto"}
    config = {"defaults": ["mlp"], "trainer": {"max_epochs": 1}}
    return rtrain.fit(config, num_workers=0, model=model, dataset={"limit": 100})


USES = {
    "evaluate": lambda run: ["evaluate", str(run.path)],
    "predict": lambda run: ["predict", str(run.path), "--split", "test", "-o", "out.csv"],
    "resume": lambda run: ["resume", str(run.path), "epochs=2"],
    "the checkpoint alone": lambda run: ["evaluate", shutil.copytree(run.best_checkpoint, "elsewhere")],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("edit", [None, "nn.ReLU -> nn.Tanh", "other file"])
def test_each_use_of_a_checkpoint_tells_of_edited_code(run, tmp_path, capsys, caplog, use, edit):
    if edit == "other file":
        (tmp_path / "other.py").write_text("a = 1")
    elif edit is not None:
        (tmp_path / "edited_nets.py").write_text(NETS.replace(*edit.split(" -> ")))
    assert command([str(word) for word in USES[use](run)]) == 0
    said = " ".join(capsys.readouterr().err.split()) + caplog.text
    assert ("edited_nets.py" in said) == (edit is not None and "->" in edit)


def test_files_are_found_by_the_names_of_a_config(tmp_path):
    for file in ("nets.py", "lib/__init__.py", "lib/blocks.py", "loops.py", "unnamed.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
    section = {
        "model": {"_target_": "nets.Net", "blocks": [{"_target_": "lib.blocks.Block"}, {"_target_": "lib.Head"}]},
        "train_loop": "loops:train",
        "optimizer": {"_target_": "torch.optim.SGD"},
        "notes": "nets.py, unnamed.py: http://a.b/c",
        "name": "unnamed.part",
    }
    code = named_code(section, tmp_path)
    assert list(code) == ["lib/__init__.py", "lib/blocks.py", "loops.py", "nets.py"]
    (tmp_path / "loops.py").write_text("other")
    (tmp_path / "nets.py").unlink()
    assert changed_code(code, named_code(section, tmp_path)) == ["loops.py"]
    assert changed_code({}, code) == []
