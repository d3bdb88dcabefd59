"""Plain data of a composed config."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

import pytest
from omegaconf import OmegaConf

from rtrain.config.compose.nodes import children, plain, unresolved

Conf = make_dataclass(
    "Conf",
    [
        ("lr", float),
        ("either", int | str, field(default=3)),
        ("other", int | str, field(default="${..text}")),
        ("inner", dict[str, Any] | None, field(default=None)),
        ("referred", list[Any], field(default="${..list}")),
        ("wanted", Any, field(default="???")),
    ],
)


@pytest.fixture
def cfg():
    texts = {"text": "a", "escaped": "\\${text}", "price": "3 $", "whole": "${list}", "list": [1, None, "${text}b", []]}
    return OmegaConf.create({"typed": OmegaConf.structured(Conf(lr=0.1)), **texts, 1: {True: 2.5}})


def resolved(node, key):
    value = node[key]
    return plain(value, resolved) if OmegaConf.is_config(value) else value


def test_plain_data_are_those_of_omegaconf(cfg):
    assert plain(cfg, unresolved) == OmegaConf.to_container(cfg)
    assert plain(cfg, resolved) == OmegaConf.to_container(cfg, resolve=True)


def test_a_container_that_is_null_or_a_reference_has_no_children(cfg):
    assert all(list(children(cfg.typed._get_node(key))) == [] for key in ("inner", "referred"))
    assert [(name, key) for name, key, _ in children(cfg.list)] == [("0", 0), ("1", 1), ("2", 2), ("3", 3)]
