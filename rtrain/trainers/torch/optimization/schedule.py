"""Check and build the schedule of the learning rate, with the schedules in it, and move it on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError, TargetError
from rtrain.trainers.loops.auto import default_monitor, fill_lengths
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.number_ranges import check_numbers
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.worker import Worker

KEY = "trainer.scheduler"
INNER = "schedulers"
"""The argument of torch's schedules that are made of others: ``SequentialLR``, ``ChainedScheduler``."""


def check_scheduler(conf: Conf, builder: Builder) -> None:
    """Refuse a schedule that can't be made, without making one.

    Raises:
        ConfigError: Something is wrong with it; names the key.
    """
    check_numbers(conf.scheduler, KEY)
    if conf.scheduler is not None:
        _check_node(conf.scheduler, KEY, builder, schedule_length(conf, steps_per_epoch=1))


def _check_node(node: Mapping[str, Any], where: str, builder: Builder, num_steps: int | None) -> None:
    size = node.get("step_size")
    if isinstance(size, int) and size < 1:
        raise TargetError(f"{where}.step_size", f"must be at least 1, not {size}")
    inner = _inner(node)
    if inner is None:
        builder.check_node(fill_lengths(node, num_steps, where), where, num_args=1)
        return
    builder.check_node(fill_lengths(_without_inner(node), num_steps, where), where, provided=("optimizer", INNER))
    is_sequence = _kind(node, where, builder) is SequentialLR
    for place, one in enumerate(inner):
        at = f"{where}.{INNER}.{place}"
        _check_node(one, at, builder, num_steps)
        if is_sequence and place and _kind(one, at, builder) is ChainedScheduler:
            message = f"{at}: torch's SequentialLR can begin with a ChainedScheduler, but not go over to one."
            raise ConfigError(message, "Chain the SequentialLR instead: each schedule in it at its time.")


def build_scheduler(worker: Worker, optimizer: Optimizer, num_steps: int | None) -> LRScheduler | None:
    """Build the schedule; ``num_steps`` is how often it will move on, where that is known.

    One that watches the monitored metric gets its direction, unless the config says one.
    """
    conf: Conf = worker.conf
    if conf.scheduler is None:
        return None
    node = conf.scheduler
    if watches_metric(conf, worker.builder) and "mode" not in node:
        default = default_monitor(conf.evaluate_split, worker.data.info)
        node = {**node, "mode": Monitor.of(worker.run.checkpoint.best, conf, worker.directions, default).mode}
    return _build_node(node, KEY, worker.builder, optimizer, num_steps)


def _build_node(
    node: Mapping[str, Any], where: str, builder: Builder, optimizer: Optimizer, num_steps: int | None
) -> LRScheduler:
    """Build a schedule, with those in it, which get the optimizer too; ``auto`` is as long as each of them acts."""
    inner = _inner(node)
    if inner is None:
        return cast("LRScheduler", builder.build(fill_lengths(node, num_steps, where), where, optimizer))
    each = _inner_lengths(node, where, builder, num_steps)
    parts = [
        _build_node(one, f"{where}.{INNER}.{place}", builder, optimizer, each[place]) for place, one in enumerate(inner)
    ]
    filled = fill_lengths(_without_inner(node), num_steps, where)
    return cast("LRScheduler", builder.build(filled, where, optimizer=optimizer, schedulers=parts))


def _inner(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """Return the nodes of the schedules in a schedule; None of one that holds none."""
    inner = node.get(INNER)
    if not isinstance(inner, list | tuple):
        return None
    return inner if all(isinstance(one, Mapping) and "_target_" in one for one in inner) else None


def _without_inner(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != INNER}


def _inner_lengths(
    node: Mapping[str, Any], where: str, builder: Builder, num_steps: int | None
) -> Sequence[int | None]:
    """Return how many steps each schedule in a schedule acts: in ``SequentialLR``, from one milestone to the next."""
    count, ends = len(node[INNER]), list(node.get("milestones") or ())
    if _kind(node, where, builder) is not SequentialLR or num_steps is None or len(ends) != count - 1:
        return [num_steps] * count
    return [max(1, end - start) for start, end in zip([0, *ends], [*ends, num_steps], strict=True)]


def watches_metric(conf: Conf, builder: Builder) -> bool:
    """Return whether the schedule moves by the monitored metric."""
    if conf.scheduler is None:
        return False
    kind = _kind(conf.scheduler, KEY, builder)
    return isinstance(kind, type) and issubclass(kind, ReduceLROnPlateau)


def _kind(node: Mapping[str, Any], where: str, builder: Builder) -> Any:
    return builder.locate(str(node["_target_"]), f"{where}._target_")


def schedule_length(conf: Conf, steps_per_epoch: int) -> int | None:
    """Return how often the schedule moves on in the whole run; None when only the clock ends it."""
    steps = conf.num_steps(steps_per_epoch)
    return steps if steps is None or conf.scheduler_interval == "step" else math.ceil(steps / steps_per_epoch)


def steps_done(scheduler: Any) -> int:
    """Return how often a schedule has moved on; a ``ChainedScheduler`` does not count, the schedules in it do."""
    done: int = next(one.last_epoch for one in each_schedule(scheduler) if hasattr(one, "last_epoch"))
    return done


def each_schedule(scheduler: Any) -> Iterator[Any]:
    """Yield a schedule and the schedules that it is made of, at any depth."""
    yield scheduler
    for part in scheduler._schedulers if hasattr(scheduler, "_schedulers") else ():
        yield from each_schedule(part)
