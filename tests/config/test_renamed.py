"""Keys under the names of older versions: they are the new keys, with a note, for configs and for recorded runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

import rtrain
from rtrain.config.nested import value_at
from rtrain.config.renamed import by_new_names, check_renamed, new_names, old_keys, renamed
from rtrain.config.session import Session
from rtrain.config.validate import dataclasses_in
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.training.resuming import find_resumption

CONFS = schemas()


@dataclass(kw_only=True)
class Inner:
    length: int = 3
    size: int | None = renamed("length")


@dataclass(kw_only=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    other: Inner | None = None
    width: float = renamed("other.length", default=0.0)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"inner": {"size": 5}}, {"inner": {"length": 5}}),
        ({"inner": {"size": None, "length": 2}}, {"inner": {"size": None, "length": 2}}),
        ({"other": {"size": 5}, "inner": {}}, {"other": {"length": 5}, "inner": {}}),
        ({"width": 2.0}, {"other": {"length": 2.0}}),
        ({"width": 2.0, "other": None}, {"other": {"length": 2.0}}),
        ({"width": 2.0, "other": {"length": 1}}, {"other": {"length": 1}}),
        ({"width": 0.0}, {"width": 0.0}),
        ({"width": "${x}", "unknown": 1}, {"other": {"length": "${x}"}, "unknown": 1}),
    ],
)
def test_values_move_to_the_new_key(before, now):
    text = json.dumps(before)
    assert by_new_names(Outer, before) == now
    assert json.dumps(before) == text  # what was given stays as it is
    assert by_new_names(Outer, now) == now


def test_all_old_keys_that_are_set_are_named():
    data = {"inner": {"size": 5, "length": 1}, "width": 2.0, "other": None}
    assert dict(old_keys(Outer, data)) == {"inner.size": "inner.length", "width": "other.length"}


@dataclass(kw_only=True)
class Whole:
    trainer: Outer = field(default_factory=Outer)
    inner: Inner = field(default_factory=Inner)


def test_each_old_key_gets_one_note():
    notes = check_renamed({"trainer": {"width": 2.0}, "inner": {"size": 1}}, Whole(), [])
    assert {note.partition(";")[0] for note in notes} == {
        "inner.size was renamed to inner.length",
        "trainer.width was renamed to trainer.other.length",
    }


OLD = [
    (group, name, conf, old, now)
    for group in ("trainer", "dataset", "sweep", "logger")
    for name, plugin in getattr(CONFS, group).items()
    for conf in dataclasses_in(plugin, set())
    for old, now in new_names(conf).items()
]


def test_there_are_old_names_to_try():
    assert {(name, old) for _, name, _, old, _ in OLD} >= {("xgboost", "early_stopping_rounds")}


@pytest.mark.parametrize(("group", "name", "conf", "old", "now"), OLD)
def test_the_new_key_of_each_old_name_exists(group, name, conf, old, now):
    for part in now.split("."):
        inner = [one for one in dataclasses_in(conf, set()) if part in getattr(one, "__dataclass_fields__", {})]
        assert inner, f"{name}: there is no {now}"


def test_the_new_name_counts_where_both_are_set_and_a_note_says_so():
    words = ["num_workers=0", "trainer.early_stopping_rounds=3", "trainer.early_stopping.patience=4"]
    with Session("xgboost", words, CONFS) as session:
        composed = session.check()
    assert composed.conf.trainer.early_stopping.patience == 4
    (note,) = [one for one in composed.notices if "early_stopping_rounds" in one]
    assert note.startswith("trainer.early_stopping_rounds has no effect: its new name, trainer.early_stopping.patience")


def check(*words):
    with Session("xgboost", ["num_workers=0", *words], CONFS) as session:
        return session.check()


def test_null_for_the_new_name_does_not_pass_unseen_where_the_old_one_is_set():
    with pytest.raises(ConfigError) as caught:
        check("trainer.early_stopping_rounds=3", "trainer.early_stopping=null")
    assert "trainer.early_stopping_rounds=null" in caught.value.hint
    assert (
        check("trainer.early_stopping_rounds=null", "trainer.early_stopping=null").conf.trainer.early_stopping is None
    )


def test_what_only_belongs_to_a_section_does_not_switch_it_on():
    old = {"early_stopping_min_delta": 0.1, "early_stopping": None}
    both = {**old, "early_stopping_rounds": 3}
    assert by_new_names(CONFS.trainer["xgboost"], old) == {"early_stopping": None}
    assert by_new_names(CONFS.trainer["xgboost"], both) == {"early_stopping": {"patience": 3, "min_delta": 0.1}}


def test_one_old_name_may_stand_next_to_the_section_of_the_new_ones():
    composed = check("trainer.early_stopping={patience: 3}", "trainer.early_stopping_min_delta=0.01")
    early = composed.conf.trainer.early_stopping
    assert (early.patience, early.min_delta) == (3, 0.01)


def test_a_wrong_value_under_an_old_name_is_one_mistake():
    with pytest.raises(ConfigError) as caught:
        check("trainer.early_stopping_rounds=0")
    assert caught.value.message.startswith("trainer.early_stopping_rounds: must be at least 1")


def test_what_is_recorded_and_its_hash_stay_as_written():
    with Session("xgboost", ["num_workers=0", "trainer.early_stopping_rounds=3"], CONFS) as session:
        composed = session.check()
    assert composed.resolved["trainer"]["early_stopping_rounds"] == 3
    assert composed.conf.trainer.early_stopping.patience == 3
    assert value_at(composed.resolved, "trainer.early_stopping") is None


def test_a_run_that_began_with_the_old_name_goes_on_with_the_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("num_workers=0", "name=r", "trainer.num_boost_round=6")
    run = rtrain.fit("xgboost", [*words, "trainer.early_stopping_rounds=2"], quiet=True)
    now = ("trainer.early_stopping.patience=2", "trainer.num_boost_round=8", f"run.resume={run.path}")
    with Session("xgboost", [*words[:2], *now], CONFS) as session:
        resumption = find_resumption(session.check())
    assert resumption is not None
    assert set(resumption.changed) - {"run.resume"} == {"trainer.num_boost_round"}
