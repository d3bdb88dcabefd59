"""How many rows the backward passes of an epoch have, and what to do where one has a single row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.errors import TrainingError, first_line
from rtrain.trainers.torch.config import Conf


def backward_rows(num_rows: int, conf: Conf, num_ranks: int) -> set[int]:
    """Return how many rows the backward passes of a run have, on whatever rank.

    Args:
        num_rows: Rows of the train split.
        conf: Its batch sizes, and the steps after which training ends.
        num_ranks: Ranks that have different rows.
    """
    per_step = conf.rows_per_step(num_ranks)
    whole, rest = divmod(num_rows, per_step)
    steps = {per_step} if whole else {rest}
    if rest and (conf.max_steps is None or conf.max_steps > whole):
        steps.add(rest)
    return {part for step in steps for own in _shares(step, num_ranks) for part in _shares(own, conf.accumulate_steps)}


def _shares(count: int, parts: int) -> set[int]:
    """Return the sizes of so many parts that differ by one row at most."""
    return {count // parts, -(-count // parts)}


def single_row(error: BaseException, conf: Conf, num_rows: int, num_ranks: int) -> TrainingError:
    """Return the error of a model that fails in training with one row; suggests a batch size that leaves no single row.

    Args:
        error: What the model raised.
        conf: Its batch sizes.
        num_rows: Rows of the train split.
        num_ranks: Ranks with their own rows.
    """
    key = "batch_size" if conf.global_batch_size is None else "global_batch_size"
    now = getattr(conf, key) or 32
    for size in (now + sign * distance for distance in range(1, 100) for sign in (1, -1)):
        changed: dict[str, Any] = {key: size}
        if size > 0 and 1 not in backward_rows(num_rows, replace(conf, **changed), num_ranks):
            hint = to_try(f"trainer.{key}={size}", "or use a model whose norms need no batch (LayerNorm, GroupNorm)")
            break
    else:
        hint = f"Use another trainer.{key}, or a model whose norms need no batch (LayerNorm, GroupNorm)"
    return TrainingError(
        f"trainer.model: {conf.model['_target_']} fails in training with a batch of one row, which {num_rows} rows in "
        f"batches of trainer.{key}={now} have: {first_line(error)}",
        hint,
    )
