"""Copies of a composed config."""

from __future__ import annotations

from dataclasses import field, make_dataclass

import pytest
from omegaconf import DictConfig, OmegaConf, ValidationError

from rtrain.config.compose.template import Template

Conf = make_dataclass("Conf", [("lr", float), ("sizes", dict[str, list[int]], field(default_factory=dict))])
"""As the classes of schemas are: no module has it under its name."""


def config() -> DictConfig:
    cfg = OmegaConf.create({"trainer": OmegaConf.structured(Conf(lr=0.1)), "lr": "${trainer.lr}"})
    OmegaConf.set_struct(cfg, True)
    return cfg


def test_a_copy_has_values_references_types_and_flags_of_the_original():
    copy = Template(config()).copy()
    assert OmegaConf.to_yaml(copy) == OmegaConf.to_yaml(config())
    copy.trainer.lr = 1
    assert copy.lr == 1.0
    assert OmegaConf.get_type(copy, "trainer") is Conf
    assert OmegaConf.is_struct(copy)
    with pytest.raises(ValidationError):
        copy.trainer.lr = "much"
    with pytest.raises(ValidationError):
        copy.trainer.sizes = {"a": "b"}


def test_copies_share_nothing():
    cfg = config()
    template = Template(cfg)
    cfg.trainer.lr = 3.0
    template.copy().trainer.sizes = {"a": [1]}
    assert template.copy() == config()
