"""Frameworks in a train loop whose workers are not joined: several workers that train a model each fail.

A trainer joins the workers for one framework. Another one in its loop knows nothing of that, and some have to be told
in the loop as well: each worker would train a separate model on its part of the rows, and the run would succeed. Here
the functions that train are watched from the moment their modules are imported. One worker may train alone (a model to
compare with, on rank 0 say); the second one that does so fails.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from rtrain.errors import TrainingError
from rtrain.trainers.loops.custom.shards.turns import Board
from rtrain.trainers.worker import Worker


@dataclass(frozen=True)
class Watched:
    """A function that trains."""

    module: str
    """That defines it."""
    name: str
    """Inside the module: ``train`` or ``Booster.update``."""
    framework: str
    is_joined: Callable[..., bool]
    """Whether this worker trains together with the others; it gets the arguments of the function."""
    joins: str
    """What joins the workers of this framework."""


def _xgboost_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["xgboost.collective"].get_world_size() > 1)


def _lightgbm_joined(booster: Any, *_: Any, **__: Any) -> bool:
    return bool(getattr(booster, "_network", False))


def _keras_joined(*_: Any, **__: Any) -> bool:
    backend = sys.modules["keras"].backend.backend()
    if backend == "tensorflow":
        return _tensorflow_joined()
    return _jax_joined() if backend == "jax" else True  # torch's gradients are torch's business


def _tensorflow_joined(*_: Any, **__: Any) -> bool:
    strategy = sys.modules["tensorflow"].distribute.get_strategy()
    return bool("TF_CONFIG" in os.environ and strategy.num_replicas_in_sync > 1)


def _jax_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["jax"].process_count() > 1)


def _torch_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["torch.distributed"].is_initialized())


def _lightning_joined(trainer: Any, *_: Any, **__: Any) -> bool:
    return bool(trainer.world_size > 1)


_TF = "tf.distribute.MultiWorkerMirroredStrategy"
_JAX = "jax.distributed.initialize"
_XGBOOST = "xgboost.collective.CommunicatorContext"
_LIGHTGBM = "ray.train.lightgbm.get_network_params(), among its parameters"
_LIGHTNING = "ray.train.lightning.RayDDPStrategy and RayLightningEnvironment as plugins of its Trainer"
WATCHED = (
    Watched("torch.optim.optimizer", "Optimizer.__init__", "torch", _torch_joined, "torch.distributed"),
    Watched("xgboost.core", "Booster.update", "xgboost", _xgboost_joined, _XGBOOST),
    Watched("xgboost.core", "Booster.boost", "xgboost", _xgboost_joined, _XGBOOST),
    Watched("lightgbm.basic", "Booster.update", "lightgbm", _lightgbm_joined, _LIGHTGBM),
    Watched("tf_keras.src.optimizers.optimizer", "Optimizer.apply_gradients", "keras", _tensorflow_joined, _TF),
    Watched("keras.src.optimizers.base_optimizer", "BaseOptimizer.apply", "keras", _keras_joined, _TF),
    Watched("keras.src.optimizers.base_optimizer", "BaseOptimizer.stateless_apply", "keras", _keras_joined, _JAX),
    Watched("optax._src.update", "apply_updates", "jax", _jax_joined, _JAX),
    Watched("lightning.pytorch.trainer.trainer", "Trainer._fit_impl", "lightning", _lightning_joined, _LIGHTNING),
    Watched("pytorch_lightning.trainer.trainer", "Trainer._fit_impl", "lightning", _lightning_joined, _LIGHTNING),
)
TRAINERS = {"keras": "tensorflow", "jax": "jax"}
"""The trainer of rtrain's for a framework, where it has another name."""


@contextmanager
def one_model(worker: Worker, framework: str) -> Iterator[None]:
    """Fail in the block when several workers train a model each, without knowing of each other.

    Args:
        worker: This one.
        framework: The one that the trainer joins the workers for.
    """
    if worker.world_size == 1:
        yield
        return
    watch = functools.partial(_watch, worker=worker, framework=framework)
    finder = _Finder(watch)
    for name in {one.module for one in WATCHED} & sys.modules.keys():
        watch(sys.modules[name])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _watch(module: ModuleType, worker: Worker, framework: str) -> None:
    for one in (one for one in WATCHED if one.module == module.__name__):
        *path, name = one.name.split(".")
        owner = functools.reduce(lambda inner, part: getattr(inner, part, None), path, cast(Any, module))
        trains = getattr(owner, name, None)
        if trains is not None and not hasattr(trains, "__rtrain_watched__"):
            setattr(owner, name, _watched(trains, one, worker, framework))


def _watched(trains: Callable[..., Any], one: Watched, worker: Worker, framework: str) -> Callable[..., Any]:
    alone = False

    @functools.wraps(trains)
    def checked(*args: Any, **kwargs: Any) -> Any:
        nonlocal alone
        if not alone and not one.is_joined(*args, **kwargs):
            alone = True
            _train_alone(worker, one, framework)
        return trains(*args, **kwargs)

    vars(checked)["__rtrain_watched__"] = True
    return checked


def _train_alone(worker: Worker, one: Watched, framework: str) -> None:
    """Note that this worker trains alone.

    Raises:
        TrainingError: Another one does so as well.
    """
    board, key = cast(Board, worker.channel), f"alone-{one.framework}"
    # Of two that begin in the same moment, at least one sees the other.
    board.pin(f"{key}-{worker.rank}", "1")
    ranks = [rank for rank in range(worker.world_size) if board.pinned(f"{key}-{rank}")]
    if len(ranks) > 1:
        trainer = TRAINERS.get(one.framework, one.framework)
        if trainer == framework:
            why, instead = "the loop doesn't use what joins them.", f"Use {one.joins}"
        else:
            why = f"the workers are joined for {framework} alone."
            of_itself = trainer in ("xgboost", "jax", "torch")
            instead = f"Choose trainer={trainer}, " + ("which joins them" if of_itself else f"and use {one.joins}")
        raise TrainingError(
            f"workers {', '.join(map(str, ranks))} train with {one.framework}, each of them a separate model: {why}",
            f"{instead}; or train with num_workers=1, or on one rank only.",
        )


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as they are found anyway, and has those that are watched changed once they are loaded."""

    def __init__(self, watch: Callable[[ModuleType], None]) -> None:
        self._watch, self._names = watch, {one.module for one in WATCHED}

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
