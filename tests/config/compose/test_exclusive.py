"""Of keys that exclude each other, the typed one counts."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from itertools import combinations, permutations
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from omegaconf import OmegaConf

from rtrain.config.diagnostics.meant.keys.schema_keys import all_confs
from rtrain.config.schema import RtrainConf
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas


def trainer_of(*words, config="resnet"):
    with Session(config, words, schemas()) as session:
        return session.check().conf.trainer


def confs():
    """Return every dataclass of keys, with those inside it."""
    known = schemas()
    found = all_confs(known, {})
    for group in ("trainer", "dataset"):
        for name in known.group(group):
            found += all_confs(known, {group: name})
    return dict.fromkeys(conf for _, conf in found if conf is not RtrainConf)


def test_each_key_that_excludes_others_is_there_and_may_be_null():
    declared = [(conf, name) for conf in confs() for names in getattr(conf, "exclusive", ()) for name in names]
    assert len(declared) >= 10
    for conf, name in declared:
        if name.startswith("/"):
            assert name[1:] in {one.name for one in fields(RtrainConf)}
            continue
        assert "None" in str({one.name: one.type for one in fields(conf)}[name]) or name == "by_hash", (conf, name)


@pytest.mark.parametrize(
    ("config", "word", "typed", "given_way"),
    [
        ("resnet", "batch_size=32", "batch_size", "global_batch_size"),
        ("mlp", "trainer.global_batch_size=32", "global_batch_size", "batch_size"),
    ],
)
def test_the_files_key_gives_way_to_the_typed_one(config, word, typed, given_way):
    trainer = trainer_of(word, config=config)
    assert (getattr(trainer, typed), getattr(trainer, given_way)) == (32, None)


def test_a_part_of_a_section_gives_way_too():
    model = trainer_of("trainer.model.pretrained=bert-base-uncased", config="transformers").model
    assert (model.pretrained, model.config) == ("bert-base-uncased", None)


def test_what_is_shown_is_what_is_trained():
    with Session("resnet", ("batch_size=32",), schemas()) as session:
        shown = yaml.safe_load(session.show_cfg("job"))["trainer"]
    assert (shown["batch_size"], shown["global_batch_size"]) == (32, None)


def test_each_trial_of_a_sweep_has_its_own():
    with Session("resnet", ("batch_size=8,16",), schemas()) as session:
        trials = session.trials()
        plans = [trials.plan(number, (str(size),)) for number, size in enumerate((8, 16))]
    found = [plan.composed.conf.trainer for plan in plans]
    assert [(one.batch_size, one.global_batch_size) for one in found] == [(8, None), (16, None)]


def test_null_takes_the_place_of_nothing():
    assert trainer_of("batch_size=null").global_batch_size == 64


def test_two_typed_ones_still_contradict_each_other():
    with pytest.raises(ConfigError, match="batch_size and global_batch_size contradict each other"):
        trainer_of("batch_size=32", "trainer.global_batch_size=64")


def values_of(conf):
    """Return a value for each key of a dataclass that may be null, by its type, and what it can't do without."""
    texts = {one.name: str(one.type) for one in fields(conf) if one.init}
    values = {"int": 1, "float": 0.5, "str": "a", "dict": {"_target_": "a.B", "model_type": "bert"}, "Any": "a"}
    found = {
        name: next((value for kind, value in values.items() if re.search(rf"\b{kind}\b", text)), None)
        for name, text in texts.items()
        if "None" in text or name == "by_hash"
    }
    needed = {"model", "module", "optimizer", "estimator", "max_epochs", "label", "path", "url", "query", "min"}
    base = {name: values["dict"] if "dict" in texts[name] else 1 for name in needed & set(texts)}
    if texts.get("model") == "ModelConf":
        base["model"] = SimpleNamespace(config=values["dict"], pretrained=None)
    return {name: value for name, value in found.items() if value is not None}, base


def excluding(conf, base, **values):
    """Return whether a dataclass takes each of some values alone, and refuses them together."""

    def refuses(given):
        try:
            conf(**{**base, **given})
        except ValueError:
            return True
        except TypeError:  # it can't be made by itself
            return False
        return False

    return refuses(values) and not any(refuses({name: value}) for name, value in values.items())


@pytest.mark.parametrize("conf", confs(), ids=lambda conf: f"{conf.__module__}.{conf.__name__}")
def test_all_keys_that_exclude_each_other_are_declared(conf):
    values, base = values_of(conf)
    declared = {frozenset(pair) for names in getattr(conf, "exclusive", ()) for pair in combinations(names, 2)}
    for one, other in combinations(values, 2):
        if excluding(conf, base, **{one: values[one], other: values[other]}):
            assert {one, other} in declared


TABLE = "dataset: {type: csv, path: t.csv, label: y, split: {%s}}"
PAIRS = [
    (f"trainer: {{type: {trainer}, max_epochs: 1, %s}}", "trainer", {"batch_size": 8, "global_batch_size": 8})
    for trainer in ("torch", "jax", "tensorflow", "lightning", "transformers")
] + [
    ("trainer: {type: torch, max_epochs: 1, %s}", "trainer", {"clip_norm": 1.0, "clip_value": 1.0}),
    (
        "trainer: {type: transformers, max_epochs: 1, model: {%s}}",
        "trainer.model",
        {"config": {"model_type": "bert"}, "pretrained": "a"},
    ),
    (
        "trainer: {type: transformers, max_epochs: 1, tokenizer: {%s}}",
        "trainer.tokenizer",
        {"pretrained": "a", "train": "unigram"},
    ),
    (f"trainer: {{type: xgboost}}\n{TABLE}", "dataset.split", {"by_group": "a", "by_time": "a", "by_hash": "a"}),
]


@pytest.mark.parametrize(("file", "section", "values"), PAIRS)
def test_every_typed_key_takes_the_place_of_what_excludes_it(tmp_path, monkeypatch, file, section, values):
    monkeypatch.chdir(tmp_path)
    for typed, written in permutations(values, 2):
        Path("c.yaml").write_text(file % f"{written}: {json.dumps(values[written])}")
        with Session("c.yaml", [f"++{section}.{typed}={as_word(values[typed])}"], schemas()) as session:
            node = OmegaConf.select(session.request.compose(), section)
        assert (node[typed], node[written]) == (values[typed], None)


def as_word(value):
    return json.dumps(value).replace('"', "")


def test_a_pair_for_each_declaration():
    declared = {frozenset(names) for conf in confs() for names in getattr(conf, "exclusive", ())}
    assert {frozenset(values) for _, _, values in PAIRS} | {frozenset(("datamodule", "/dataset"))} == declared


@pytest.mark.parametrize("typed", ["dataset=digits", "trainer.datamodule={_target_: mine.Data}"])
def test_data_of_another_section_gives_way(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    written = "trainer: {type: lightning}\ndataset: {type: mnist}"
    if typed.startswith("dataset"):
        written = "trainer: {type: lightning, datamodule: {_target_: mine.Other}}"
    Path("c.yaml").write_text(written)
    with Session("c.yaml", [typed], schemas()) as session:
        cfg = session.request.compose()
    if typed.startswith("dataset"):
        assert (cfg.dataset.type, cfg.trainer.datamodule) == ("digits", None)
    else:
        assert (cfg.dataset, cfg.trainer.datamodule._target_) == (None, "mine.Data")
