"""The rows on which trainers try model and loss before training, and what a failure there means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import Any, TypeVar

import numpy as np

from rtrain.config.diagnostics.own_lines import own_lines
from rtrain.datasets.base import DatasetInfo, EpochPlan, ResidentSplit, Split
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.errors import RtrainError, TrainingError, first_line
from rtrain.trainers.known_errors import is_out_of_memory
from rtrain.trainers.loops.tasks import CLASSES, PLACES
from rtrain.trainers.worker import Worker

Found = TypeVar("Found")


class SanityCheckError(TrainingError):
    """A part of the config fails with the rows on which it is tried."""


def try_rows(worker: Worker, batch_rows: int, attempt: Callable[[ResidentSplit], Found]) -> Found | None:
    """Call ``attempt`` with the first rows of the train split, and if it fails with those of a whole batch.

    Rows that are streamed are not read for a sanity check: zeros take their place, with which honest models may fail.

    Args:
        worker: Has a dataset; shows a notice of a failure with zeros.
        batch_rows: Rows of a batch as the model gets it.
        attempt: Tries what the config names.

    Returns:
        What ``attempt`` returns; None where it fails with zeros.

    Raises:
        TrainingError: It fails with the rows of the dataset, or whatever the values of the rows.
    """
    split, info = worker.data.splits["train"], worker.data.info
    with suppress(SanityCheckError):  # what fails with a whole batch too is raised there
        return attempt(first_rows(split, info, num_tried_rows(info)))
    try:
        return attempt(first_rows(split, info, num_tried_rows(info, batch_rows)))
    except SanityCheckError as error:
        if is_at_hand(split):
            raise
        worker.notice(f"tried with zeros, as the rows are streamed: {error.message}")
        return None


def first_rows(split: Split, info: DatasetInfo, num_rows: int) -> ResidentSplit:
    """Return the first rows of a split, at most ``num_rows``; zeros if they are not at hand."""
    if is_at_hand(split):
        plan = EpochPlan(rank=0, world_size=1, global_batch_size=num_rows, seed=0, shuffle=False)
        batch = next(iter(split.batches(plan)))
        return ResidentSplit({"x": batch.x, "y": batch.y} | ({} if batch.weight is None else {"weight": batch.weight}))
    places = info.input_shape[:1] if info.task in PLACES else ()
    y = np.zeros((num_rows, *places), "int64" if info.task in CLASSES else "float32")
    return ResidentSplit({"x": np.zeros((num_rows, *info.input_shape), info.dtype), "y": y})


def is_at_hand(split: Split) -> bool:
    """Return whether single rows of a split cost nothing to read."""
    return isinstance(split, ResidentSplit | MappedSplit) and split.num_rows > 0


def num_tried_rows(info: DatasetInfo, batch_rows: int | None = None) -> int:
    """Return a few rows, or some batches of them: no other length of the dataset, so that nothing fits it by chance."""
    sizes = range(2, 9) if batch_rows is None else count(batch_rows, batch_rows)
    return next(size for size in sizes if size not in (info.num_classes, *info.input_shape[:3]))


class WrongOutputsError(TrainingError):
    """A model gives another number of outputs than the targets need.

    Args:
        shape: Of the outputs of one row.
        info: The dataset.
        hint: What to do about it.
    """

    def __init__(self, shape: Sequence[int], info: DatasetInfo, hint: str) -> None:
        classes = info.num_classes or 0
        places = " at each place" if info.task in PLACES else ""
        what = f"{info.name} has {classes} classes{places}: labels go up to {classes - 1}"
        what = what if info.task in CLASSES else "the target is one number"
        super().__init__(f"the model returns {tuple(shape)} numbers per row, but {what}.", hint)
        self.size = shape[-1] if shape else 1


@contextmanager
def tried(
    what: str, info: DatasetInfo, shapes: str, instead: str = "Choose one that accepts them, or another dataset."
) -> Iterator[None]:
    """Let the block call a part of the config, and make what it raises an error that says so.

    Args:
        what: The key of the config, and what it names.
        info: The dataset.
        shapes: The shapes of its arguments.
        instead: Advice where the part comes from a library.

    Raises:
        SanityCheckError: The part fails.
    """
    try:
        yield
    except RtrainError:
        raise
    except Exception as error:
        if is_out_of_memory(type(error).__name__, str(error)):
            raise
        is_own = bool(own_lines(error)["own"])  # the screen shows these lines: the user's code has to be fixed
        raise SanityCheckError(
            f"{what} fails with {shapes} of {info.name}: {type(error).__name__}: {first_line(error)}",
            None if is_own else instead,
        ) from error


def tried_model(node: Mapping[str, Any], info: DatasetInfo, shape: Sequence[int]) -> AbstractContextManager[None]:
    """Return ``tried`` for the model that a part of the config names, and rows of a shape."""
    kind = "tokens" if info.dtype == "int64" else "numbers"
    return tried(f"trainer.model: {node['_target_']}", info, f"rows of {kind} of shape {tuple(shape)}")
