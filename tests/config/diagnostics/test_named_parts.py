"""A part whose class a mapping names, as configs of other tools have it: ``optimizer={name: adam, lr: 0.1}``."""

import itertools

import pytest

from rtrain.cli.app import run
from rtrain.config.diagnostics.meant.keys.mappings import NAMES, chosen_by_name

PARTS = [
    ("optimizer", "Adam", "lr: 0.001", "optimizer=adam optimizer.lr=0.001"),
    ("optimizer", "sgd", "lr: 0.1, momentum: 0.9", "optimizer=sgd optimizer.lr=0.1 optimizer.momentum=0.9"),
    ("scheduler", "cosine", "", "scheduler=cosine"),
    ("trainer.loss", "cross_entropy", "", "trainer.loss=cross_entropy"),
    ("model", "resnet18", "", "model=resnet18"),
    ("trainer.optimizer", "adamw", "weight_decay: 0.1", "trainer.optimizer=adamw trainer.optimizer.weight_decay=0.1"),
]


@pytest.mark.parametrize(
    ("part", "name", "value", "others", "tried"),
    [(part, name, *rest) for (part, *rest), name in zip(PARTS, itertools.cycle(NAMES), strict=False)],
)
def test_the_name_in_a_mapping_chooses_an_option(part, name, value, others, tried, capsys):
    given = f"{name}: {value}" + (f", {others}" if others else "")
    assert run(["check", "mlp", f"{part}={{{given}}}"]) != 0
    assert f" mlp {tried}" in capsys.readouterr().err.partition("try: ")[2]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_option_is_not_tried(name, capsys):
    assert run(["check", "mlp", f"optimizer={{{name}: lookahead, lr: 0.1}}"]) != 0
    assert "try:" not in capsys.readouterr().err


def test_a_mapping_with_two_names_or_none_chooses_nothing():
    assert chosen_by_name("optimizer", {"name": "adam", "type": "sgd"}) == []
    assert chosen_by_name("optimizer", {"lr": "0.1"}) == []
