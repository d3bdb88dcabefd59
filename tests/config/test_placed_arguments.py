"""An argument that can't be is named under the typed characters, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import rtrain
from rtrain.errors import ConfigError


def marked(line, carets):
    """Return what the carets stand under."""
    return line[carets.index("^") : carets.rindex("^") + 1]


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("lr=fast", "trainer.optimizer.lr: must be a number, not 'fast'"),
        ("model.hidden=64", "trainer.model.hidden: must be a list, not 64"),
    ],
)
def test_a_wrong_argument_is_placed(word, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        rtrain.fit("mlp", ["num_workers=0", word])
    shown = str(caught.value).splitlines()
    assert shown[0] == problem
    assert marked(*shown[1:3]) == f'"{word}"'
    assert not list(Path().iterdir())


def test_a_wrong_argument_of_a_trial_is_placed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    word = "trainer.optimizer.lr=0.1,fast"
    with pytest.raises(ConfigError) as caught:
        rtrain.sweep("mlp", ["num_workers=0", word])
    shown = str(caught.value).splitlines()
    assert shown[0] == "trainer.optimizer.lr: must be a number, not 'fast'"
    assert shown[1] == "  in trial 1: trainer.optimizer.lr=fast"
    assert marked(*shown[2:4]) == f'"{word}"'
