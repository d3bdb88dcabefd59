"""Whoever uses a checkpoint after the code of its model was edited is told, in git and outside of it."""

from __future__ import annotations

import shutil

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.config.targets.allow_list import use_project_root
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

RULE = """
from torch.optim import SGD


class Rule(SGD):
    pass
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of a model of the user's, in a project outside of git."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "edited_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    model = {"_target_": "edited_nets.Net", "num_classes": "auto"}
    config = {"defaults": ["mlp"], "trainer": {"max_epochs": 1}}
    (tmp_path / "edited_rule.py").write_text(RULE)
    rule = {"_target_": "edited_rule.Rule", "lr": 0.1}
    return rtrain.fit(config, num_workers=0, model=model, optimizer=rule, dataset={"limit": 100})


USES = {
    "evaluate": lambda run: ["evaluate", str(run.path)],
    "predict": lambda run: ["predict", str(run.path), "--split", "test", "-o", "out.csv"],
    "resume": lambda run: ["resume", str(run.path), "epochs=2"],
    "the checkpoint alone": lambda run: ["evaluate", shutil.copytree(run.best_checkpoint, "elsewhere")],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("edit", [None, "model", "optimizer", "other"])
def test_each_use_of_a_checkpoint_tells_of_edited_code(run, tmp_path, capsys, caplog, use, edit):
    edited = {"model": "edited_nets.py", "optimizer": "edited_rule.py", "other": "other.py"}.get(edit)
    if edited is not None:
        with (tmp_path / edited).open("a") as stream:
            stream.write("# edited")
    assert command([str(word) for word in USES[use](run)]) == 0
    said = " ".join(capsys.readouterr().err.split()) + caplog.text
    assert ("edited_nets.py" in said) == (edit == "model")
    assert ("edited_rule.py" in said) == (edit == "optimizer" and use == "resume")


def test_files_are_found_by_the_names_of_a_config(tmp_path, monkeypatch):
    use_project_root(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    for file in (
        "src/package/__init__.py",
        "src/package/parts.py",
        "nets.py",
        "lib/__init__.py",
        "lib/blocks.py",
        "loops.py",
        "unnamed.py",
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).write_text(file)
    section = {
        "model": {"_target_": "nets.Net", "blocks": [{"_target_": "lib.blocks.Block"}, {"_target_": "lib.Head"}]},
        "train_loop": "loops:train",
        "optimizer": {"_target_": "torch.optim.SGD"},
        "loss": {"_target_": "package.parts.Loss"},
        "notes": "nets.py, unnamed.py: http://a.b/c",
        "name": "unnamed.part",
    }
    code = named_code(section, tmp_path)
    assert list(code) == ["lib/__init__.py", "lib/blocks.py", "loops.py", "nets.py", "src/package/parts.py"]
    (tmp_path / "loops.py").write_text("other")
    (tmp_path / "nets.py").unlink()
    assert changed_code(code, named_code(section, tmp_path)) == ["loops.py"]
    assert changed_code({}, code) == []
