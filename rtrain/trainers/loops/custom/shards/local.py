"""What ``ray.train.get_dataset_shard`` returns without a cluster: a split, read as Ray's ``DataIterator`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rtrain.datasets.base import Split
from rtrain.datasets.whole.splits import TableSplit, arrays_of
from rtrain.trainers.loops.custom.shards.batches import in_batches, num_rows_of

if TYPE_CHECKING:
    import torch

PLAIN: Mapping[str, tuple[Any, ...]] = {
    "batch_format": ("default", "numpy"),
    "local_shuffle_buffer_size": (None,),
    "local_shuffle_seed": (None,),
    "pin_memory": (False,),
}
"""Arguments of Ray's that change nothing of what it yields with these values; ``prefetch_batches`` never does."""


class LocalShard:
    """A whole split, column by column, in the order of the data, as a ``ray.data.DataIterator``.

    Rows and batches of arrays and tensors are read here. All else, batches in other formats or in another order say, is
    left to Ray Data, which starts a cluster for it.

    Args:
        split: The split.
    """

    def __init__(self, split: Split) -> None:
        self._split = split

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each of them a dict."""
        if isinstance(self._split, TableSplit):
            yield from self._split.rows()
            return
        for columns in self._split.own_rows(0, 1):
            for index in range(num_rows_of(columns)):
                yield {name: values[index] for name, values in columns.items()}

    def iter_batches(
        self, *, batch_size: int | None = 256, drop_last: bool = False, **others: Any
    ) -> Iterator[dict[str, np.ndarray]]:
        """Return batches of NumPy arrays by column.

        Args:
            batch_size: Rows of each; None for as many as are read at a time.
            drop_last: Leave the last batch out if it has fewer rows.
            others: What Ray's ``iter_batches`` takes as well.

        Raises:
            ValueError: ``batch_size`` is below 1.
        """
        if _is_plain(others):
            return self._batches(batch_size, drop_last)
        found: Iterator[Any] = iter(self._of_ray.iter_batches(batch_size=batch_size, drop_last=drop_last, **others))
        return found

    def iter_torch_batches(
        self,
        *,
        batch_size: int | None = 256,
        dtypes: torch.dtype | Mapping[str, torch.dtype] | None = None,
        device: str = "auto",
        collate_fn: Callable[[dict[str, np.ndarray]], Any] | None = None,
        drop_last: bool = False,
        **others: Any,
    ) -> Iterator[Any]:
        """Return batches of torch tensors by column, or what ``collate_fn`` makes of the arrays.

        Args:
            batch_size: As for ``iter_batches``.
            dtypes: Of the tensors, for all columns or by column.
            device: Where the tensors go; ``auto``: where the model is.
            collate_fn: Makes a batch of the arrays by column; Ray's classes for other formats get those.
            drop_last: As for ``iter_batches``.
            others: What Ray's ``iter_torch_batches`` takes as well.

        Raises:
            KeyError: ``dtypes`` lacks a column, which Ray's shards on workers refuse as well.
            ValueError: ``batch_size`` is below 1, or ``collate_fn`` is given together with ``dtypes`` or ``device``.
        """
        if not _is_plain(others) or _takes_tables(collate_fn):
            given = {"dtypes": dtypes, "device": device, "collate_fn": collate_fn, "drop_last": drop_last}
            return iter(self._of_ray.iter_torch_batches(batch_size=batch_size, **given, **others))
        if collate_fn is not None and (dtypes is not None or device != "auto"):
            raise ValueError("collate_fn can't be used with dtypes and device: it returns what they would apply to.")
        batches = self._batches(batch_size, drop_last)
        if collate_fn is not None:
            return map(collate_fn, batches)
        place = _device() if device == "auto" else device
        return (_tensors(batch, dtypes, place) for batch in batches)

    def __getattr__(self, name: str) -> Any:
        """Return what else Ray's shards have."""
        from ray.data import DataIterator

        if name.startswith("_") or not hasattr(DataIterator, name):  # without a cluster for what is a mistake
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._of_ray, name)

    @cached_property
    def _of_ray(self) -> Any:
        from rtrain.datasets.ray_data import dataset_of

        return dataset_of(self._split).iterator()

    def _batches(self, batch_size: int | None, drop_last: bool) -> Iterator[dict[str, np.ndarray]]:
        if batch_size is not None and batch_size < 1:
            raise ValueError(
                f"batch_size must be at least 1, or None for as many rows as are read at a time: {batch_size}."
            )
        return self._read(batch_size, drop_last)

    def _read(self, batch_size: int | None, drop_last: bool) -> Iterator[dict[str, np.ndarray]]:
        if isinstance(self._split, TableSplit):  # rows first, then arrays: what is missing elsewhere changes no type
            yield from (dict(arrays_of(table)) for table in in_batches(self._split.tables(), batch_size, drop_last))
        else:
            yield from map(dict, in_batches(self._split.own_rows(0, 1), batch_size, drop_last))


def _is_plain(others: Mapping[str, Any]) -> bool:
    """Return whether these arguments of Ray's change nothing of the batches."""
    return all(
        name == "prefetch_batches" or any(value is one or value == one for one in PLAIN.get(name, ()))
        for name, value in others.items()
    )


def _takes_tables(collate_fn: Any) -> bool:
    """Return whether this is one of Ray's classes whose batches are Arrow tables or frames of pandas."""
    from ray.data.collate_fn import ArrowBatchCollateFn, PandasBatchCollateFn

    return isinstance(collate_fn, ArrowBatchCollateFn | PandasBatchCollateFn)


def _device() -> Any:
    import ray.train.torch

    return ray.train.torch.get_device()


def _tensors(batch: dict[str, np.ndarray], dtypes: Any, device: Any) -> dict[str, torch.Tensor]:
    from ray.data.util.torch_utils import convert_ndarray_batch_to_torch_tensor_batch

    def dtype(name: str) -> Any:
        if not isinstance(dtypes, Mapping):
            return dtypes
        if name not in dtypes:
            raise KeyError(f"dtypes names no type for the column '{name}': name all columns ({', '.join(batch)}).")
        return dtypes[name]

    def tensor(name: str, values: np.ndarray) -> torch.Tensor:
        # A copy: what shares the memory of the split must not be changed in place by a loop.
        found: torch.Tensor = convert_ndarray_batch_to_torch_tensor_batch(np.array(values), dtypes=dtype(name))
        return found.to(device)

    return {name: tensor(name, values) for name, values in batch.items()}
