"""Tests that tables of keys inherit: each key has a row, each row is true, and none is true without its key."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import ClassVar, get_args, get_origin

import pytest
from acting_rows import STOPPED, Refused, Row, Shown, Trained
from named_tests import exists

import rtrain
from rtrain.config.hints import hints_of
from rtrain.config.needs import Way, idle_keys
from rtrain.config.schema import RunConf, ScalingConf
from rtrain.config.session import Session
from rtrain.errors import RtrainError
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.trainers.async_writer import Saver
from rtrain.trainers.loops.stopping import StopSignal


@dataclass(frozen=True)
class Watched(Run):
    """A run, and what only shows while it trains."""

    saved_beside: list[bool]
    """Of each checkpoint, whether it was written beside training."""


class Runs:
    """Trainings of one config in this process, each of them once."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder = folder
        for name, text in {"pyproject.toml": "", **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "store").mkdir()
        self.trained: dict[frozenset[str], Watched] = {}

    def of(self, words: tuple[str, ...]) -> Watched:
        """Return the run with overrides; rows that share a run name the same ones, each of them in another order."""
        key = frozenset(words)
        if key not in self.trained:
            self.trained[key] = self.train(words)
        return self.trained[key]

    def train(self, words: tuple[str, ...]) -> Watched:
        """Train with overrides. ``BASE`` in a word is the run without any; a run that fails or stops is one too."""
        typed = [self.told(word) for word in words if word != STOPPED]
        beside: list[bool] = []
        with chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            watch_saver(patch, beside)
            if STOPPED in words:
                stop_at_second_step(patch)
            try:
                run = rtrain.fit("base.yaml", typed)
            except RtrainError as error:
                if error.run_dir is None:
                    raise
                run = Run.load(error.run_dir)
        return Watched(self.folder / run.path, run.manifest, beside)

    def told(self, word: str) -> str:
        """Return a word with paths: of the folder for ``FOLDER``, of the run without any words for ``BASE``."""
        word = word.replace("FOLDER", str(self.folder))
        return word.replace("BASE", str(self.of(()).path)) if "BASE" in word else word

    def written(self) -> set[Path]:
        """Return all files and folders but what Python compiles."""
        return {path for path in self.folder.rglob("*") if "__pycache__" not in path.parts}

    def refusal(self, words: tuple[str, ...]) -> str:
        """Return why overrides are refused, with nothing written."""
        typed = [self.told(word) for word in words]
        before = self.written()
        with chdir(self.folder), pytest.raises(RtrainError) as raised:
            rtrain.fit("base.yaml", typed)
        assert sorted(map(str, self.written() - before)) == []
        return str(raised.value)


def watch_saver(patch: pytest.MonkeyPatch, found: list[bool]) -> None:
    """Keep of each checkpoint whether it is written beside training."""
    start = Saver.start
    patch.setattr(
        Saver, "start", lambda saver, task, *, beside: (found.append(beside), start(saver, task, beside=beside))[1]
    )


def stop_at_second_step(patch: pytest.MonkeyPatch) -> None:
    """Send this process the signal of a machine that is taken away, when a worker has taken its second step."""
    agreed, calls = StopSignal.agreed, iter(range(1, 1_000))

    def after_signal(stop: StopSignal, step: int) -> str:
        if next(calls) == 2:
            signal.raise_signal(signal.SIGTERM)
        return agreed(stop, step)

    patch.setattr(StopSignal, "agreed", after_signal)


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
    every = [pytest.param(row, id=row.key) for row in trained]
    read = [pytest.param(row, id=row.key) for row in refusals]
    for name, values in {"trained": quick, "any_trained": every, "refused": read}.items():
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
