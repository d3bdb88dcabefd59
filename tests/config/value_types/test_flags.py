"""Switches take true and false, 1 and 0, and no other number."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import pytest
from omegaconf import BooleanNode, OmegaConf
from omegaconf.errors import ValidationError

from rtrain.config.schema import RtrainConf
from rtrain.config.session import Session
from rtrain.config.value_types.flags import FlagNode, with_flags
from rtrain.config.value_types.units import leaves
from rtrain.errors import ConfigError
from rtrain.schemas import schemas


@dataclass
class Conf:
    on: bool = True
    maybe: bool | None = None
    count: int = 2


def test_other_numbers_are_no_switches():
    conf = deepcopy(with_flags(OmegaConf.structured(Conf)))
    for value in (2, -1, 0.5, 600):
        for name in ("on", "maybe"):
            with pytest.raises(ValidationError):
                conf[name] = value
    conf.count = 3


@pytest.mark.parametrize(("value", "taken"), [(1, True), (0, False), ("yes", True), ("off", False), (True, True)])
def test_what_says_yes_or_no_is_a_switch(value, taken):
    conf = deepcopy(with_flags(OmegaConf.structured(Conf)))
    conf.on = value
    assert conf.on is taken


def test_every_switch_of_the_schema_is_strict():
    flags = [
        node for _, _, node in leaves(with_flags(OmegaConf.structured(RtrainConf))) if isinstance(node, BooleanNode)
    ]
    assert flags
    assert all(type(node) is FlagNode for node in flags)


@pytest.mark.parametrize("word", ["use_gpu=2", "trainer.shuffle=2", "run.private=0600", "trainer.compile=-1"])
def test_a_number_that_is_typed_is_refused(word):
    with (
        pytest.raises(ConfigError, match="must be true or false, not") as caught,
        Session("mlp", [word], schemas()) as one,
    ):
        one.check()
    assert f"rtrain fit mlp {word}" in str(caught.value)
