"""What hints say to try: whole commands, which a shell takes apart as they are meant, and which pass the check."""

from __future__ import annotations

import shlex
from itertools import cycle

import pytest

from rtrain.cli.app import run as command
from rtrain.config.did_you_mean import to_try
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

SIGNS = ";&|(){}[]=,:'\"\\$#é "
KEYS = ("lr", "trainer.early_stopping", "run.root_dirr", "dataset.seed", "model.hiden", "trainer.precision", "epocs")


def refused(config: str, *words: str) -> str:
    """Return the text of the error; empty if there is none."""
    try:
        typed = ("rtrain", "fit", config, "--multirun") if "--multirun" in words else ()
        with Session(config, [word for word in words if word != "--multirun"], schemas(), typed=typed) as session:
            session.trials() if typed else session.check()
    except ConfigError as error:
        return str(error)
    return ""


def attempts(said: str) -> list[list[str]]:
    """Return the words of the commands that a message says to try."""
    start = to_try("")
    return [
        shlex.split(line.strip().removeprefix(start)) for line in said.split("\n") if line.strip().startswith(start)
    ]


GENERATED = [(key, f"a{sign}b") for sign, key in zip(SIGNS, cycle(KEYS), strict=False)]
GENERATED += [(key, f"{sign}5") for sign, key in zip(SIGNS[::-2], cycle(KEYS), strict=False)]
GENERATED += [("name", f"{sign}b{sign}") for sign in SIGNS[1::2]]


@pytest.mark.parametrize(("key", "value"), GENERATED, ids=[f"{key}={value}" for key, value in GENERATED])
def test_every_attempt_survives_the_shell_and_the_check(key, value):
    for words in attempts(refused("mlp", f"{key}={value}")):
        assert words[:3] == ["rtrain", "fit", "mlp"]
        assert refused("mlp", *words[3:]) == ""


@pytest.mark.parametrize(
    ("config", "word", "meant"),
    [
        ("mlp", "name=modèle", "name=modele"),
        ("mlp", "run.root_dirr=a;b", 'run.root_dir="a;b"'),
        ("mlp", "dataset.limit=5;", "dataset.limit=5"),
        ("xgboost", "trainer.params=[max_depth=3]", "trainer.params={max_depth: 3}"),
        ("xgboost", "trainer.params=dict(max_depth=3, eta=0.1)", "trainer.params={max_depth: 3, eta: 0.1}"),
        ("mlp", "run.stop.target=val/accuracy=0.9", "run.stop.target={val/accuracy: 0.9}"),
        ("mlp", "epochs", "epochs=20"),
        ("mlp", "use_gpu", "use_gpu=true"),
    ],
)
def test_what_can_not_be_read_leads_to_what_was_meant(config, word, meant):
    assert attempts(refused(config, word)) == [["rtrain", "fit", config, meant]]


@pytest.mark.parametrize(
    ("config", "words", "meant"),
    [
        ("sklearn", ["num_workers=0", "max_epochs=3"], ["num_workers=0", "max_epochs=null"]),
        ("mlp", ["num_workers=0", "loss=huber"], ["num_workers=0", "loss=cross_entropy"]),
        (
            "mlp",
            ["num_workers=0", "run.checkpoint.best.monitor=accuracy"],
            ["num_workers=0", "run.checkpoint.best.monitor=val/accuracy"],
        ),
        (
            "mlp",
            ["num_workers=0", "trainer.early_stopping.monitor=train_loss"],
            ["num_workers=0", "trainer.early_stopping.monitor=train/loss"],
        ),
    ],
)
def test_what_a_plugin_says_to_try_is_a_whole_command(config, words, meant, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["fit", config, *words]) == 2
    (found,) = attempts(capsys.readouterr().err)
    assert found[:3] == ["rtrain", "fit", config]
    assert len(found) == 3 + len(meant)
    assert all(one.startswith(start) for one, start in zip(found[3:], meant, strict=True))
