"""A config that is merged onto what others made before is the one that Hydra makes of all of them in a row."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import Container, OmegaConf
from small_project import SCHEMAS, write

import rtrain
from rtrain.config.compose.sources import kept
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

ROOT = Path(rtrain.__file__).parents[1]
SHIPPED = [*sorted((ROOT / "configs").glob("*.yaml")), *sorted((ROOT / "recipes").glob("*/*.yaml"))]
OWN = {
    "a value": "trainer: {max_epochs: 7}",
    "null in place of a mapping": "trainer: {optimizer: null}",
    "a mapping in place of null": "trainer: {scheduler: {_target_: a.b, t: 3}}",
    "missing": "trainer: {max_epochs: '???', own: {a: '???'}}",
    "a reference": "trainer: {own: {a: '${trainer.max_epochs}', b: '${vars.b}'}}\nvars: {b: 2}",
    "a list in place of a list": "dataset: {columns: [a, b]}",
    "deeper than before": "trainer: {own: {a: {b: {c: [1, {d: 2}]}}}}",
    "itself before others": None,
    "another package": "trainer: {own: {z: 1}}",
    "nothing": "vars: {}",
}


def described(node):
    """Return all that counts of a node: types, flags and values, and the same of those in it."""
    meta = node._metadata
    about = (type(node), meta.ref_type, meta.object_type, meta.optional, dict(meta.flags or {}))
    if not isinstance(node, Container) or node._is_none() or node._is_missing() or node._is_interpolation():
        return about, node._value()
    keys = range(len(node)) if OmegaConf.is_list(node) else list(node)
    return about, [(key, described(node._get_node(key))) for key in keys]


def compared(make, monkeypatch):
    """Compose both ways, each from nothing, and with a config before that has the same beginning."""
    found = {}
    for name in ("whole", "last"):
        kept._template.cache_clear()
        with monkeypatch.context() as patch:
            if name == "whole":
                patch.setattr(kept, "_with_last", lambda cfg, last: None)
            found[name] = described(make())
    assert found["last"] == found["whole"]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_config_that_ships(file, monkeypatch):
    def make():
        with Session(str(file), ["num_workers=0"], schemas()) as session:
            return session.request.compose()

    compared(make, monkeypatch)


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_a_config_of_a_user(text, project, monkeypatch):
    head = "defaults: [_self_, digits]\n" if text is None else "defaults: [digits]\n"
    write("configs/own.yaml", head + (text or "trainer: {max_epochs: 7}") + "\n")

    def make():
        with Session("own", [], SCHEMAS) as session:
            return session.request.compose()

    compared(make, monkeypatch)


def test_what_can_not_be_merged_is_said_as_hydra_says_it(project):
    write("configs/own.yaml", "defaults: [digits]\ntrainer: {max_epochs: {a: 1}}\n")
    with Session("own", [], SCHEMAS) as session, pytest.raises(ConfigError, match="max_epochs"):
        session.check()
