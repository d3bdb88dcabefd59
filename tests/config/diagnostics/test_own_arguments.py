"""A new argument of a class of the project's, whatever its name means elsewhere."""

from pathlib import Path

import pytest

from rtrain.cli.app import run as command

CONFIG = """
defaults: [{trainer: torch}, {dataset: digits}, {optimizer: adam}, _self_]
trainer: {max_epochs: 2, model: {_target_: nets.Net, in_features: auto, num_classes: auto, growth: 2}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("own.yaml").write_text(CONFIG)


@pytest.mark.parametrize(
    "name", ["width", "dropout", "num_layers", "hidden_size", "block_type", "own_word", "lr", "epochs"]
)
@pytest.mark.parametrize("section", ["trainer.model", "model"])
def test_the_command_that_adds_it_is_shown(project, capsys, section, name):
    assert command(["check", "own.yaml", f"{section}.{name}=4"]) == 2
    assert f"try: rtrain check own.yaml +{section}.{name}=4" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["grwth", "in_feature", "numclasses"])
def test_an_argument_that_is_there_may_be_misspelt(project, capsys, name):
    assert command(["check", "own.yaml", f"trainer.model.{name}=4"]) == 2
    assert "did you mean: trainer.model." in capsys.readouterr().err
