"""Frameworks that train on several workers without a world of their own: the second worker that does so fails."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtrain.errors import TrainingError
from rtrain.trainers.loops.custom.separate_models import one_model
from rtrain.trainers.loops.custom.world import TrainingFunction
from rtrain.trainers.registry import plugins

SOURCE = """
class Booster:
    def update(self):
        return "trained"
"""


class Board(dict):
    def pin(self, key, value):
        self[key] = value

    def pinned(self, key):
        return self.get(key)


@pytest.fixture
def framework(tmp_path, monkeypatch):
    """A framework that is importable, and not imported yet; ``joined`` says whether its workers are."""
    (tmp_path / "a_framework.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_framework", raising=False)
    joined = []
    watched = TrainingFunction("a_framework", "Booster.update", "a_framework", lambda _: bool(joined), "joining")
    plugin = SimpleNamespace(watched=(watched,))
    yield SimpleNamespace(joined=joined, frameworks=lambda: [("a_framework", plugin)])
    sys.modules.pop("a_framework", None)


def worker(rank, board, world_size=2):
    return SimpleNamespace(rank=rank, world_size=world_size, channel=board)


def train(framework, rank, board, world_size=2):
    """Import the framework in the loop, and train twice."""
    sys.modules.pop("a_framework", None)
    with one_model(worker(rank, board, world_size), "torch", framework.frameworks):
        from a_framework import Booster

        return [Booster().update(), Booster().update()]


def test_the_second_worker_that_trains_alone_fails_before_it_has_trained(framework):
    board = Board()
    assert train(framework, 0, board) == ["trained", "trained"]
    with pytest.raises(TrainingError, match="workers 0, 1 train with a_framework"):
        train(framework, 1, board)


def test_workers_that_are_joined_train(framework):
    framework.joined.append(True)
    board = Board()
    assert train(framework, 0, board) == train(framework, 1, board) == ["trained", "trained"]


def test_one_worker_of_a_run_may_train_as_it_likes(framework):
    for rank in (0, 1):
        assert train(framework, rank, Board(), world_size=1) == ["trained", "trained"]


def test_a_module_that_is_there_already_is_watched_too(framework):
    board = Board({"alone-a_framework-0": "1"})
    import a_framework

    with one_model(worker(1, board), "torch", framework.frameworks), pytest.raises(TrainingError):
        a_framework.Booster().update()


def test_the_import_of_everything_else_is_left_alone(framework):
    finders = list(sys.meta_path)
    with one_model(worker(0, Board()), "torch", framework.frameworks):
        assert sys.meta_path[1:] == finders
        assert sys.meta_path[0].find_spec("json", None) is None
    assert sys.meta_path == finders


WATCHED = [one for _, plugin in plugins() for one in plugin.watched]


@pytest.mark.parametrize("one", WATCHED, ids=lambda one: f"{one.module}.{one.name}")
def test_what_is_watched_exists_where_the_framework_is_installed(one):
    pytest.importorskip(one.module.partition(".")[0])
    source = find_spec(one.module)
    assert source is not None
    assert f"def {one.name.rpartition('.')[2]}(" in Path(source.origin).read_text()
