"""Rows transformed in other processes, some batches before the step that takes them."""

from __future__ import annotations

import atexit
import os
import signal
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from rtrain.errors import RtrainError, TrainingError, first_line
from rtrain.trainers.torch.inputs.row_transform import RowTransform

Work = tuple[Tensor, np.ndarray | None]
"""The rows of a batch, and the seed of each one's random numbers; see ``RowTransform``."""


class TransformProcesses:
    """Transforms batches in the order in which they come, by a ``DataLoader`` whose processes stay.

    Args:
        transform: What happens to the rows; each process has a copy of it.
        num_workers: How many processes there are.
        prefetch: How many batches each of them may have begun.
    """

    def __init__(self, transform: RowTransform, num_workers: int, prefetch: int) -> None:
        self._work = _Work()
        self._loader: DataLoader[Any] = DataLoader(
            _Transformed(transform),
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
        """Yield the transformed rows of each batch; ``work`` is read in this thread, some batches ahead.

        Raises:
            RtrainError: The transform has raised it.
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


class _Transformed(Dataset[Any]):
    """A batch for each work."""

    def __init__(self, transform: RowTransform) -> None:
        self._transform = transform

    def __getitem__(self, work: Work) -> Tensor | RtrainError:
        """Return the rows, or why there are none: an error that is raised here would lose its lines on the way."""
        try:
            return self._transform(*work)
        except RtrainError as error:
            return error
        except Exception as error:  # whatever user code raises
            return self._transform.failure(error)


def _end(processes: weakref.ref[TransformProcesses]) -> None:
    if (found := processes()) is not None:
        found.close()


def _as_it_is(found: Any) -> Any:
    return found


def _begin(_: int) -> None:
    """Leave Ctrl-C, and what ``timeout`` sends to all processes of the group, to training, which ends this one."""
    os.setpgrp()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
