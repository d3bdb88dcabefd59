"""Of keys that exclude each other, the typed one counts."""

from __future__ import annotations

from dataclasses import fields

import pytest
import yaml

from rtrain.config.schema import RtrainConf
from rtrain.config.session import Session
from rtrain.config.suggest import all_confs
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
