"""What a process has composed makes the next composition quick, and changes nothing of it."""

from __future__ import annotations

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from omegaconf import OmegaConf, open_dict
from small_project import FILES, SCHEMAS, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError


def composed(*words):
    with Session("mine", words, SCHEMAS) as session:
        return session.request.compose()


@pytest.fixture(autouse=True)
def mine(project):
    """A config that includes another one, and refers to a value of it."""
    write("configs/base.yaml", "vars: {a: 1}\n")
    write("configs/mine.yaml", "defaults: [digits, base]\nvars: {b: '${.a}', c: [1, 2]}\n")


def test_the_same_config_is_merged_once(monkeypatch):
    first = composed()
    monkeypatch.setattr(ConfigLoaderImpl, "_load_single_config", None)
    assert composed().vars == first.vars


@pytest.mark.parametrize("name", ["mine", "base"])
def test_a_file_that_has_changed_is_read_again(name):
    texts = {"mine": "defaults: [digits, base]\nvars: {b: 5, c: [1, 2]}\n", "base": "vars: {a: 5}\n"}
    assert composed().vars.b == 1
    write(f"configs/{name}.yaml", texts[name])
    assert composed().vars.b == 5
    write("configs/mine.yaml", "defaults: [digits]\nvars: {b: 6}\n")
    assert OmegaConf.to_container(composed().vars) == {"b": 6}


def test_a_file_that_is_found_first_takes_the_place_of_another():
    assert composed().vars.a == 1
    name = next(one for one in FILES if one.endswith("digits.yaml"))
    write(name, FILES[name] + "\nvars: {d: 7}\n")
    assert composed().vars.d == 7


def test_what_becomes_of_a_config_is_not_in_the_next_one():
    cfg = composed("vars.a=3", "vars.c=[7]")
    with open_dict(cfg):
        cfg.vars.c.append(8)
        cfg.vars.e = 1
        cfg.trainer.max_epochs = 9
        del cfg.vars.a
    again = composed()
    assert OmegaConf.to_container(again.vars, resolve=True) == {"a": 1, "b": 1, "c": [1, 2]}
    assert again.trainer.max_epochs != 9


def test_what_a_word_says_is_not_changed_by_who_reads_it():
    for _ in range(2):
        cfg = composed("+vars.f={x: [1]}")
        assert cfg.vars.f == {"x": [1]}
        cfg.vars.f.x.append(2)


def test_an_error_is_told_each_time():
    for _ in range(2):
        with Session("mine", ["vars.a=["], SCHEMAS) as session, pytest.raises(ConfigError):
            session.check()
