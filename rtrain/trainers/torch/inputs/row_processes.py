"""Rows read and transformed in other processes, some batches before the step that takes them."""

from __future__ import annotations

import atexit
import os
import signal
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from rtrain.config.targets.importing import raised_at
from rtrain.errors import RtrainError, TrainingError, first_line

Work = tuple[Any, np.ndarray]
"""The rows of a batch, or their numbers; and the seed of each one's random numbers, as ``RowTransform`` takes them."""


class RowProcesses:
    """Prepares batches in the order in which they come, by a ``DataLoader`` whose processes stay.

    Args:
        prepare: Makes the rows of a batch of its work; each process has a copy of it.
        where: The key of what the user's code does to the rows, for its errors.
        num_workers: How many processes there are.
        prefetch: How many batches each of them may have begun.
    """

    def __init__(self, prepare: Callable[..., Tensor], where: str, num_workers: int, prefetch: int) -> None:
        self._work = _Work()
        self._loader: DataLoader[Any] = DataLoader(
            _Prepared(prepare, where),
            batch_size=None,
            sampler=self._work,
            num_workers=num_workers,
            prefetch_factor=prefetch,
            persistent_workers=True,
            collate_fn=_as_it_is,
            worker_init_fn=_begin,
            multiprocessing_context="fork",
            generator=torch.Generator(),  # its seeds come from this one instead of those of training
        )
        atexit.register(_end, weakref.ref(self))

    def close(self) -> None:
        """End the processes. Those that outlive the exit of Python are terminated, which torch reports as an error."""
        if self._loader._iterator is not None:
            self._loader._iterator._shutdown_workers()  # type: ignore[attr-defined]

    def __call__(self, work: Iterable[Work]) -> Iterator[Tensor]:
        """Yield the rows of each batch; ``work`` is read in this thread, some batches ahead.

        Raises:
            RtrainError: What prepares them has raised it.
            TrainingError: It has raised another error; or a process was killed.
        """
        self._work.batches = work
        try:
            for found in self._loader:
                if isinstance(found, RtrainError):
                    raise found
                yield found
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise TrainingError(
                f"a process of trainer.loader ended: {first_line(error)}",
                "If memory is short: fewer processes (trainer.loader.num_workers), or fewer rows at a time "
                "(trainer.batch_size, trainer.loader.prefetch).",
            ) from error


class _Work(Sampler[Work]):
    """The batches of one pass after the other."""

    batches: Iterable[Work] = ()

    def __iter__(self) -> Iterator[Work]:
        return iter(self.batches)


class _Prepared(Dataset[Any]):
    """A batch for each work."""

    def __init__(self, prepare: Callable[..., Tensor], where: str) -> None:
        self._prepare, self._where = prepare, where

    def __getitem__(self, work: Work) -> Tensor | RtrainError:
        """Return the rows, or why there are none: an error that is raised here would lose its lines on the way."""
        try:
            return self._prepare(*work)
        except RtrainError as error:
            return error
        except Exception as error:  # whatever user code raises
            return _failure(error, self._where)


def _failure(error: Exception, where: str) -> TrainingError:
    """Return what stands for an error of user code in the process of training, which has not its traceback."""
    failure = TrainingError(f"{where} failed: {type(error).__name__}: {first_line(error)}", raised_at(error))
    failure.cause_type = type(error).__name__
    return failure


def _end(processes: weakref.ref[RowProcesses]) -> None:
    if (found := processes()) is not None:
        found.close()


def _as_it_is(found: Any) -> Any:
    return found


def _begin(_: int) -> None:
    """Leave Ctrl-C, and what ``timeout`` sends to all processes of the group, to training, which ends this one."""
    os.setpgrp()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
