"""Tests that tables of keys inherit: each key has a row, each row is true, and none is true without its key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import fields, is_dataclass
from typing import ClassVar, get_args, get_origin

import pytest
from acting_rows import STOPPED, Refused, Row, Shown, Trained
from acting_runs import Runs
from acting_sweeps import AGAIN, is_for_workers, swept_words, trained_on_workers, words_on_workers
from named_tests import exists

from rtrain.config.needs import Way, idle_keys
from rtrain.config.run_conf import RunConf
from rtrain.config.schema import ScalingConf
from rtrain.config.session import Session
from rtrain.config.value_types.fields import hints_of
from rtrain.errors import ConfigError
from rtrain.schemas import schemas


class KeysAct:
    """What a trainer's table says: a config that trains in an instant, and a row for each key."""

    trainer: ClassVar[str]
    config: ClassVar[str]
    """The file of all runs; they differ from it by what is typed."""
    options: ClassVar[Mapping[str, str]] = {}
    """More files beside it."""
    rows: ClassVar[Sequence[Row]]
    decided: ClassVar[frozenset[str]] = frozenset({"scaling.num_workers", "trainer.type", "trainer.train_loop"})
    """Keys that choose a way of running which has a table of its own: what only acts there needs no row here."""

    workers: ClassVar[tuple[str, ...]] = ("scaling.num_workers=2",)
    """Words of all runs on Ray. Two cores hold one run of two workers at a time, all in the same processes."""

    @pytest.fixture(scope="class")
    @classmethod
    def runs(cls, tmp_path_factory):
        return Runs(tmp_path_factory.mktemp(cls.__name__), {"base.yaml": cls.config, **cls.options})

    def test_each_key_that_is_not_declared_idle_has_a_row(self, runs):
        wanted = set(acting_keys(self.trainer, self.decided, runs))
        lacking = {key for key in wanted if not any(covers(key, row.key) for row in self.rows)}
        unknown = {row.key for row in self.rows if not any(covers(key, row.key) for key in wanted)}
        assert not lacking, lacking
        assert not unknown, unknown

    def test_the_run_trains_whatever_is_compared_with_it(self, runs):
        assert runs.of(()).status == "succeeded"

    def test_a_key_acts(self, runs, trained):
        """Parametrized by the rows that train."""
        base = runs.of(trained.given)
        changed = runs.of((*trained.given, *trained.beside, *trained.words))
        assert trained.look(base) != trained.look(changed)

    def test_no_row_tells_a_run_from_its_repetition(self, runs):
        rows = [row for row in self.rows if isinstance(row, Trained) and not row.given and not row.slow]
        base, again = runs.of(()), runs.train(())
        assert [row.key for row in rows if row.look(base) != row.look(again)] == []

    @pytest.mark.slow
    def test_a_row_fails_if_its_key_is_ignored(self, runs, any_trained):
        """All words of a shared run but the row's own leave what the row looks at as it was."""
        base = runs.of(any_trained.given)
        others = runs.train((*any_trained.given, *any_trained.beside))
        assert any_trained.look(base) == any_trained.look(others)

    @pytest.mark.slow
    def test_a_key_acts_on_one_of_two_trials(self, runs, swept):
        first, second = runs.sweep(swept_words(swept, runs))
        assert swept.look(first) != swept.look(second)

    @pytest.mark.slow
    def test_a_sweep_says_what_it_can_not_vary(self, runs, not_varied):
        with pytest.raises(ConfigError, match=not_varied.not_varied):
            runs.sweep(swept_words(not_varied, runs))

    @pytest.fixture(scope="class")
    @classmethod
    def trained_there(cls, runs):
        rows = [row for row in cls.rows if isinstance(row, Trained) and is_for_workers(row)]
        return trained_on_workers(runs, rows, cls.workers)

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_no_row_tells_a_run_on_workers_from_its_repetition(self, trained_there):
        rows = [row for row in self.rows if isinstance(row, Trained) and is_for_workers(row) and not row.given]
        assert {run.status for run in (trained_there[()], trained_there[AGAIN])} == {"succeeded"}
        assert [row.key for row in rows if row.look(trained_there[()]) != row.look(trained_there[AGAIN])] == []

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_a_key_acts_on_workers(self, trained_there, on_workers):
        base, changed = trained_there[on_workers.given], trained_there[words_on_workers(on_workers)]
        assert on_workers.look(base) != on_workers.look(changed)

    def test_a_key_is_read(self, runs, refused):
        found = runs.refusal(refused.words)
        assert re.search(refused.because, found), found
        assert "has no effect" not in found

    def test_the_test_that_shows_it_exists(self):
        shown = {row.test for row in self.rows if isinstance(row, Shown)}
        assert [test for test in shown if not exists(test)] == []


def pytest_generate_tests(metafunc):
    """Make a test of each row; its name is the key."""
    if metafunc.cls is None or not issubclass(metafunc.cls, KeysAct):
        return
    trained = [row for row in metafunc.cls.rows if isinstance(row, Trained)]
    refusals = [row for row in metafunc.cls.rows if isinstance(row, Refused)]
    quick = [pytest.param(row, id=row.key, marks=[pytest.mark.slow] * row.slow) for row in trained]
    every = {
        "any_trained": trained,
        "refused": refusals,
        "swept": [row for row in trained if not row.not_varied and STOPPED not in row.given],
        "not_varied": [row for row in trained if row.not_varied],
        "on_workers": [row for row in trained if is_for_workers(row)],
    }
    named = {name: [pytest.param(row, id=row.key) for row in rows] for name, rows in every.items()}
    for name, values in {"trained": quick, **named}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values)


def acting_keys(trainer, decided, runs):
    """Yield the keys that a trainer follows in this process, and those that other keys let it follow."""
    with chdir(runs.folder), Session("base.yaml", (), schemas()) as session:
        way = Way(session.check().conf)
    idle = idle_keys(way)
    confs = {"trainer": schemas().trainer[trainer], "run": RunConf, "scaling": ScalingConf}
    for key in (key for where, conf in confs.items() for key in keys_of(conf, where)):
        need = next((need for section, need in idle.items() if covers(section, key)), None)
        if need is None or not decided.issuperset(need.keys):
            yield key


def keys_of(conf, where):
    """Yield the full keys of a dataclass that hold no further keys of their own."""
    hints = hints_of(conf)
    for one in fields(conf):
        inner = next((arm for arm in _arms(hints[one.name]) if is_dataclass(arm)), None)
        full = f"{where}.{one.name}"
        yield from [full] if inner is None else keys_of(inner, full)


def _arms(hint):
    """Return the types that a value may have; what a mapping holds is named by users."""
    return [hint, *get_args(hint)] if get_origin(hint) is not dict else []


def covers(key, other):
    """Tell whether ``other`` is a key, or lies in it."""
    return f"{other}.".startswith(f"{key}.")
