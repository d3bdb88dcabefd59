"""Fail a train loop in which several workers train a separate model each, because their framework does not join them.

A trainer joins the workers for one framework. Another framework in its loop does not know of that, and some have to be
set up in the loop as well. Otherwise each worker would train a separate model on its part of the rows, and the run
would succeed. This module watches the functions that train from the moment their modules are imported. One worker may
train alone (e.g. a model to compare with, on rank 0); the second one that does so fails.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from rtrain.errors import TrainingError
from rtrain.trainers.loops.custom.shards.turns import Board
from rtrain.trainers.loops.custom.world import Frameworks, TrainingFunction
from rtrain.trainers.worker import Worker


@contextmanager
def one_model(worker: Worker, framework: str, frameworks: Frameworks) -> Iterator[None]:
    """Fail in the block when several workers train a model each, without knowing of each other.

    Args:
        worker: This one.
        framework: The one that the trainer joins the workers for.
        frameworks: Returns all plugins by name.
    """
    if worker.world_size == 1:
        yield
        return
    alone = functools.partial(_train_alone, worker, framework)
    watched = [(one, functools.partial(alone, name, one)) for name, plugin in frameworks() for one in plugin.watched]
    watch, modules = functools.partial(_watch, watched=watched), {one.module for one, _ in watched}
    finder = _Finder(watch, modules)
    for name in modules & sys.modules.keys():
        watch(sys.modules[name])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _watch(module: ModuleType, watched: Sequence[tuple[TrainingFunction, Callable[[], None]]]) -> None:
    for one, train_alone in (found for found in watched if found[0].module == module.__name__):
        *path, name = one.name.split(".")
        owner = functools.reduce(lambda inner, part: getattr(inner, part, None), path, cast("Any", module))
        trains = getattr(owner, name, None)
        if trains is not None and not hasattr(trains, "__rtrain_watched__"):
            setattr(owner, name, _watched(trains, one, train_alone))


def _watched(trains: Callable[..., Any], one: TrainingFunction, train_alone: Callable[[], None]) -> Callable[..., Any]:
    alone = False

    @functools.wraps(trains)
    def checked(*args: Any, **kwargs: Any) -> Any:
        nonlocal alone
        if not alone and not one.is_joined(*args, **kwargs):
            alone = True
            train_alone()
        return trains(*args, **kwargs)

    vars(checked)["__rtrain_watched__"] = True
    return checked


def _train_alone(worker: Worker, framework: str, trainer: str, one: TrainingFunction) -> None:
    """Note that this worker trains alone with what a trainer watches.

    Raises:
        TrainingError: Another one does so as well.
    """
    board, key = cast("Board", worker.channel), f"alone-{one.framework}"
    # Of two that begin in the same moment, at least one sees the other.
    board.pin(f"{key}-{worker.rank}", "1")
    ranks = [rank for rank in range(worker.world_size) if board.pinned(f"{key}-{rank}")]
    if len(ranks) > 1:
        if trainer == framework:
            why, instead = "the loop doesn't connect the workers.", f"Use {one.joins}"
        else:
            why = f"the workers are connected only for {framework}."
            instead = f"Choose trainer={trainer}, " + (
                "which connects them" if one.by_itself else f"and use {one.joins}"
            )
        raise TrainingError(
            f"workers {', '.join(map(str, ranks))} train with {one.framework}, each of them a separate model: {why}",
            f"{instead}; or train with num_workers=1, or on one rank only.",
        )


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as they are found anyway, and has those that are watched changed once they are loaded."""

    def __init__(self, watch: Callable[[ModuleType], None], names: Collection[str]) -> None:
        self._watch, self._names = watch, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a watched module with a loader that changes it."""
        if fullname not in self._names:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            _watch_when_loaded(spec.loader, self._watch)
        return spec


def _watch_when_loaded(loader: Any, watch: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        watch(module)

    loader.exec_module = exec_module
