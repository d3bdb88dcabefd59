"""What a LightningModule logs, under the names of rtrain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lightning.pytorch as pl
from torch import Tensor

from rtrain.errors import TrainingError

_NAME = re.compile(r"(train|training|val|valid|validation|test)[_/.](.+)", re.IGNORECASE)
_OF_LOADER = re.compile(r"(.+)(/dataloader_idx_\d+)")
_COPY = re.compile(r"_(step|epoch)(?=/dataloader_idx_\d+$|$)")
TRAIN = "train"


def metric_name(name: str, split: str | None, loop: str) -> str:
    """Return a metric of the module's ``self.log`` as ``<split>/<name>``.

    Args:
        name: As the module logged it: ``val_loss``, ``train/acc`` or ``loss``. A name without a split gets that of
            the loop, unless the module put a slash into it (``lr/group1``).
        split: What ``validation_step`` is called on.
        loop: The split of the loop that logged it.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        of_loader = _OF_LOADER.fullmatch(name)
        return name if "/" in (name if of_loader is None else of_loader[1]) else f"{loop}/{name}"
    of, rest = found[1].lower(), found[2]
    if of.startswith(TRAIN):
        return _of_epoch(f"{TRAIN}/{rest.removesuffix('_epoch')}") if rest.endswith("_epoch") else f"{TRAIN}/{rest}"
    return f"{split or 'val' if of.startswith('val') else of}/{rest}"


def names_here(name: str, split: str | None) -> list[str]:
    """Return the names that a metric may have here which Lightning knows as ``name``, the likeliest first.

    Lightning has a metric of steps and epochs as ``acc``, ``acc_step`` and ``acc_epoch``.
    """
    loops = [TRAIN] if split is None else [split, TRAIN]
    return [metric_name(one, split, loop) for one in (name, _COPY.sub("", name)) for loop in loops]


def of_steps(trainer: pl.Trainer, split: str | None) -> dict[str, float]:
    """Return what the module has logged of its newest steps."""
    return {metric_name(one.name, split, TRAIN): one.number for one in _logged(trainer, on_step=True)}


def of_epoch(trainer: pl.Trainer, split: str | None) -> dict[str, float]:
    """Return what the module has logged of a whole epoch of training, under names that no single step has."""
    found = {}
    for one in _logged(trainer, on_step=False):
        found[_epoch_name(one.name, split, of_steps_too=one.of_steps_too)] = one.number
    return found


def names_of_training(trainer: pl.Trainer, split: str | None) -> list[str]:
    """Return the names of ``of_steps`` and ``of_epoch`` in the epoch that ends, and of the loss of the steps."""
    results: Any = trainer._results
    logged = [(one.meta.name, one.meta) for one in results.values() if not one.has_reset]
    of_steps = {metric_name(name, split, TRAIN) for name, how in logged if how.on_step}
    of_epoch = {_epoch_name(name, split, of_steps_too=how.forked) for name, how in logged if how.on_epoch}
    return sorted(of_steps | of_epoch | {f"{TRAIN}/loss"})


def of_evaluation(trainer: pl.Trainer, split: str | None) -> dict[str, float]:
    """Return what the module has logged in the evaluation that ends, and what callbacks have added by themselves."""
    added = {metric_name(name, split, TRAIN): _number(name, value) for name, value in _added(trainer).items()}
    logged = _logged(trainer, on_step=False)
    return added | {metric_name(one.name, split, split or "val"): one.number for one in logged}


def names_of_evaluation(trainer: pl.Trainer, split: str | None) -> list[str]:
    """Return under which names the module has logged in the evaluation that ends, without computing their values."""
    results: Any = trainer._results
    logged = [one for one in results.values() if one.meta.on_epoch and not one.has_reset]
    return sorted({metric_name(results._forked_name(one, False)[0], split, split or "val") for one in logged})


@dataclass(frozen=True)
class _Logged:
    name: str
    """As the module logged it; with the number of its loader if there are several."""
    number: float
    of_steps_too: bool
    """It is logged for steps and for epochs."""


def _logged(trainer: pl.Trainer, *, on_step: bool) -> Iterator[_Logged]:
    """Yield what the loop under way has logged, of all its loaders, each metric once.

    ``callback_metrics`` has the metrics of both loops under one name, and those of steps and epochs under two.
    """
    results: Any = trainer._results
    for one in results.values():
        value = None if one.has_reset else results._get_cache(one, on_step)
        if value is not None:
            name = results._forked_name(one, on_step)[0]
            yield _Logged(name, _number(name, value), one.meta.forked)


def _added(trainer: pl.Trainer) -> dict[str, Any]:
    """Return what callbacks have written into ``callback_metrics``, as LearningRateMonitor does."""
    loop: Any = trainer.fit_loop.epoch_loop
    every = [(results, one) for results in (loop._results, loop.val_loop._results) for one in results.values()]
    logged = {name for results, one in every for step in (True, False) for name in results._forked_name(one, step)}
    return {name: one for name, one in trainer._logger_connector._callback_metrics.items() if name not in logged}


def _number(name: str, value: Any) -> float:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise TrainingError(
            f"the module logs {name} with {value.numel()} values, but a metric must be a single number.",
            f'Log each: self.log(f"{name}_{{number}}", value) for each number and value, or log their mean.',
        )
    return float(value)


def _epoch_name(name: str, split: str | None, *, of_steps_too: bool) -> str:
    found = metric_name(name, split, TRAIN)
    return _of_epoch(found) if of_steps_too or found == f"{TRAIN}/loss" else found


def _of_epoch(name: str) -> str:
    of, _, rest = name.partition("/")
    return f"{of}/epoch_{rest}"
