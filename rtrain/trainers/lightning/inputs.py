"""Loaders whose rows are shared out among workers: in steps that all have, none dropped and none doubled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

from rtrain.datasets.base import DatasetInfo, EpochPlan, ShardLayout, Split, concatenated, share_of, step_rows
from rtrain.errors import TrainingError
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.torch.inputs.standardize import Standardizer, as_tensor, target_tensor
from rtrain.trainers.torch.ranks import TorchRanks

OF_ROWS = 1
"""Sets the random numbers of reading rows apart from those of the step itself."""


class SplitRows(Dataset[Any]):
    """Rows of one of our splits: (x, y), x standardized; taken a batch at a time from the memory of the dataset."""

    def __init__(self, split: Split, info: DatasetInfo) -> None:
        every = concatenated(list(split.own_rows(0, 1)))
        self._x, self._y = as_tensor(every["x"]), target_tensor(every["y"])
        self._standardized = Standardizer(info, torch.device("cpu"))

    def __len__(self) -> int:
        return len(self._y)

    def __getitem__(self, row: int) -> Any:
        return self.__getitems__([row])

    def __getitems__(self, rows: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        return self._standardized(self._x[list(rows)]), self._y[list(rows)]


class FirstRow(int):
    """The first row of a batch, which knows where the random numbers of reading the batch begin."""

    place: tuple[int, ...]
    """Seed, rank, epoch and step."""


class Seeded(Dataset[Any]):
    """The user's rows; the random numbers of their transforms depend on seed, rank, epoch and step alone.

    Wherever they are read: in this process, or in those of the loader.
    """

    def __init__(self, inner: Dataset[Any]) -> None:
        self._inner: Any = inner

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, row: int) -> Any:
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> Any:
        if isinstance(rows[0], FirstRow):
            torch.default_generator.manual_seed(seed_step(*rows[0].place))
        plain = [int(row) for row in rows]
        at_once = getattr(self._inner, "__getitems__", None)
        return [self._inner[row] for row in plain] if at_once is None else at_once(plain)


class TrainBatches(BatchSampler):
    """This rank's rows of each step of an epoch; a rank without rows in the last one gets one that counts nothing."""

    def __init__(
        self, num_rows: int, rows_per_step: int, ranks: TorchRanks, seed: int, shuffle: bool, drop: bool
    ) -> None:
        self.num_rows, self.rows_per_step, self._ranks = num_rows, rows_per_step, ranks
        self._seed, self._shuffle, self._drop = seed, shuffle, drop
        self.epoch = self.begin_step = self.begin_row = 0
        """Where the next pass begins."""

    def begin(self, epoch: int, step: int = 0, row: int = 0) -> None:
        """Set where the next pass begins: after ``step`` steps, which may have had another size, and ``row`` rows."""
        self.epoch, self.begin_step, self.begin_row = epoch, step, row

    def __len__(self) -> int:
        rows = self.num_rows - self.begin_row
        return self.begin_step + (rows // self.rows_per_step if self._drop else math.ceil(rows / self.rows_per_step))

    def __iter__(self) -> Iterator[list[int]]:
        plan = EpochPlan(
            rank=self._ranks.rank,
            world_size=self._ranks.size,
            global_batch_size=self.rows_per_step,
            seed=self._seed,
            epoch=self.epoch,
            shuffle=self._shuffle,
            skip_rows=self.begin_row,
        )
        for number, (rows, _) in enumerate(step_rows(self.num_rows, plan), start=self.begin_step):
            if number < len(self):
                first, *others = rows.tolist() or [0]
                known = FirstRow(first)
                known.place = (self._seed, self._ranks.rank, self.epoch, number, OF_ROWS)
                yield [known, *others]

    def rows_before(self, step: int) -> int:
        """Return the rows of all ranks in the steps of the epoch before ``step``."""
        return min(self.num_rows, self.begin_row + (step - self.begin_step) * self.rows_per_step)

    def share(self, step: int) -> float:
        """Return the weight of this rank's mean loss in the step, such that the mean over ranks is that over rows."""
        return self.own_rows(step) * self._ranks.size / (self.rows_before(step + 1) - self.rows_before(step))

    def own_rows(self, step: int) -> int:
        """Return the rows of this rank in the step."""
        rows = self.rows_before(step + 1) - self.rows_before(step)
        low, high = share_of(rows, self._ranks.rank, self._ranks.size)
        return high - low

    def num_own_rows(self) -> int:
        """Return the rows of this rank in a whole epoch."""
        layout = ShardLayout(num_workers=self._ranks.size, rows_per_step=self.rows_per_step)
        rest = self.num_rows % self.rows_per_step if self._drop else 0
        return layout.own_rows(self._ranks.rank, self.num_rows - rest)


class EvalBatches(BatchSampler):
    """One contiguous part of the rows for each rank, in as many steps on each, none of them without rows.

    One rank alone has all rows, in whole batches and a last one with the rest.
    """

    def __init__(self, num_rows: int, batch_size: int, ranks: TorchRanks) -> None:
        if num_rows < ranks.size:
            raise TrainingError(f"{num_rows} rows can't be evaluated by {ranks.size} workers: each needs at least one.")
        low, high = share_of(num_rows, ranks.rank, ranks.size)
        least, most = num_rows // ranks.size, math.ceil(num_rows / ranks.size)
        self.num_own_rows = high - low
        # With batches of one row, a rank that has one row more than others takes it along with its last one.
        steps = min(math.ceil(most / batch_size), least)
        # Each step leaves one row at least to each of those that follow.
        starts = [min(low + step * batch_size, high - (steps - step)) for step in range(steps)]
        self._parts = [range(start, end) for start, end in pairwise([*starts, high])]

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[list[int]]:
        return (list(part) for part in self._parts)


def loader_of(dataset: Dataset[Any], batches: BatchSampler) -> DataLoader[Any]:
    """Return a loader of our rows."""
    return DataLoader(dataset, batch_sampler=batches, collate_fn=_as_it_is)


def _as_it_is(batch: Any) -> Any:
    return batch


class SharedData(pl.LightningDataModule):
    """The user's datamodule, with its loaders shared out among the workers.

    Args:
        inner: The user's own.
        ranks: The workers.
        seed: Of the order of the rows.
        progress: Where training begins.
        validates: The module is validated, if there is something to validate it on.
    """

    def __init__(
        self, inner: pl.LightningDataModule, ranks: TorchRanks, seed: int, progress: EpochProgress, *, validates: bool
    ) -> None:
        super().__init__()
        self._inner, self._ranks, self._seed, self._progress = inner, ranks, seed, progress
        self.train_batches: TrainBatches | None = None
        self.num_own_rows: dict[str, int] = {}
        self.split = "val" if validates and is_overridden("val_dataloader", inner) else None

    def prepare_data(self) -> None:
        """Let the user's module prepare."""
        self._inner.prepare_data()

    def setup(self, stage: str) -> None:
        """Let the user's module set up, with the trainer that runs."""
        self._inner.trainer = self.trainer
        self._inner.setup(stage)

    def teardown(self, stage: str) -> None:
        """Let the user's module clean up."""
        self._inner.teardown(stage)

    def train_dataloader(self) -> Any:
        """Return the user's loader with this rank's rows."""
        loader = self._inner.train_dataloader()
        cut = self._cut(loader, "train_dataloader")
        if cut is None:
            self.seed_rows(self._progress.epoch, 0)
            return loader
        size, shuffle = cut.batch_size * self._ranks.size, isinstance(cut.sampler, RandomSampler)
        batches = TrainBatches(len(loader.dataset), size, self._ranks, self._seed, shuffle, cut.drop_last)
        batches.begin(self._progress.epoch, self._progress.step_in_epoch, self._progress.rows)
        self.train_batches = batches
        self.num_own_rows["train"] = batches.num_own_rows()
        return with_batches(loader, batches, Seeded(loader.dataset))

    def seed_rows(self, epoch: int, step: int) -> None:
        """Have samplers and transforms that are left alone draw by seed, epoch and step; shared rows do so anyway."""
        if self.train_batches is None:
            self._ranks.seed(seed_step(self._seed, self._ranks.rank, epoch, step, OF_ROWS))

    def val_dataloader(self) -> Any:
        """Return the user's loaders, each as it is or with this rank's rows; none if there is no validation."""
        if self.split is None:
            return []
        found = self._inner.val_dataloader()
        loaders = list(found) if isinstance(found, list | tuple) else [found]
        self.num_own_rows.pop("val", None)
        shared = [self._shared(loader) for loader in loaders]
        return shared if isinstance(found, list | tuple) else shared[0]

    def _shared(self, loader: Any) -> Any:
        """Return a loader for validation with this rank's rows; one rank alone takes the batches as they are."""
        cut = self._cut(loader, "val_dataloader")
        if cut is None:
            return loader
        num_rows = len(loader.dataset)
        kept = num_rows - (num_rows % cut.batch_size if cut.drop_last else 0)
        batches = EvalBatches(kept, cut.batch_size, self._ranks)
        self.num_own_rows["val"] = self.num_own_rows.get("val", 0) + batches.num_own_rows
        return loader if self._ranks.size == 1 else with_batches(loader, batches, loader.dataset)

    def _cut(self, loader: Any, name: str) -> BatchSampler | None:
        """Return how the loader cuts its rows, each once, into batches; None to leave it to that.

        Raises:
            TrainingError: There are several workers, and the loader can't be shared out.
        """
        cut = loader.batch_sampler if isinstance(loader, DataLoader) else None
        if type(cut) is BatchSampler and _takes_each_row(cut.sampler, loader.dataset):
            return cut
        if self._ranks.size > 1:
            raise TrainingError(
                f"{name} of the datamodule has a custom sampler, or no fixed rows: it can't be split among workers.",
                "Return a DataLoader with batch_size and shuffle, or use num_workers=1.",
            )
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return what the user's module keeps in checkpoints."""
        state: dict[str, Any] = self._inner.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Give it back."""
        self._inner.load_state_dict(state_dict)


def _takes_each_row(sampler: Any, rows: Any) -> bool:
    """Return whether a sampler takes each row once, in order or in any order."""
    if type(sampler) not in (RandomSampler, SequentialSampler):
        return False
    return len(sampler) == len(rows) and not getattr(sampler, "replacement", False)


def with_batches(loader: DataLoader[Any], batches: BatchSampler, rows: Dataset[Any]) -> DataLoader[Any]:
    """Return a loader of these rows in these batches, with the processes and functions of ``loader``."""
    return DataLoader(
        rows,
        batch_sampler=batches,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        persistent_workers=loader.persistent_workers,
        prefetch_factor=loader.prefetch_factor,
        timeout=loader.timeout,
        multiprocessing_context=loader.multiprocessing_context,
    )


class OurData(pl.LightningDataModule):
    """Our dataset as a datamodule: ``train``, and the evaluated split for validation."""

    def __init__(
        self,
        train: DataLoader[Any],
        evaluated: DataLoader[Any] | None,
        train_batches: TrainBatches,
        num_own_rows: dict[str, int],
        split: str | None,
    ) -> None:
        super().__init__()
        self._train, self._evaluated = train, evaluated
        self.train_batches, self.num_own_rows, self.split = train_batches, num_own_rows, split

    def train_dataloader(self) -> Any:
        """Return this rank's batches."""
        return self._train

    def val_dataloader(self) -> Any:
        """Return this rank's part of the evaluated split."""
        return [] if self._evaluated is None else self._evaluated

    def seed_rows(self, epoch: int, step: int) -> None:
        """Do nothing: reading our rows draws no random numbers."""
