"""What ``ray.train.get_dataset_shard`` returns without a cluster: a split, read as Ray's ``DataIterator`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rtrain.datasets.base import Columns, Dataset, Split, joined, take
from rtrain.errors import TrainingError

if TYPE_CHECKING:
    import torch

NO_EFFECT = ("prefetch_batches",)
"""Arguments that change how fast Ray reads, and nothing of what it yields."""
LACKING = ("iter_tf_batches", "iter_jax_batches", "materialize", "schema", "stats", "to_tf", "to_torch")
"""What Ray's shards have and these lack."""
DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "batch_format": ("default", "numpy"),
    "local_shuffle_buffer_size": (None,),
    "local_shuffle_seed": (None,),
    "pin_memory": (False,),
}
"""Arguments of Ray's that are understood with these values only."""
ON_WORKERS = "On a Ray worker it is Ray's own: num_workers=1"


def check_name(dataset: Dataset | None, name: str) -> Dataset:
    """Return the dataset of a run if it has a split of this name.

    Raises:
        TrainingError: It has none; names those that exist.
    """
    if dataset is None:
        raise TrainingError(
            f"trainer.train_loop asks for the dataset shard '{name}', and the config has no dataset.",
            "Choose one (dataset=csv), or read the data in the loop.",
        )
    if name not in dataset.splits:
        raise TrainingError(
            f"trainer.train_loop asks for the dataset shard '{name}'; the dataset has {', '.join(dataset.splits)}.",
            "The names are those of the splits: ray.train.get_dataset_shard('train'). Which splits there are: "
            "dataset.split",
        )
    return dataset


class LocalShard:
    """A whole split, column by column, in the order of the data.

    Args:
        name: Of the split.
        split: The split.
    """

    def __init__(self, name: str, split: Split) -> None:
        self._name, self._split = name, split

    def count(self) -> int:
        """Return the rows of the split."""
        return self._split.num_rows

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each of them a dict."""
        for columns in self._split.own_rows(0, 1):
            for index in range(_num_rows(columns)):
                yield {name: values[index] for name, values in columns.items()}

    def iter_batches(
        self, *, batch_size: int | None = 256, drop_last: bool = False, **others: Any
    ) -> Iterator[dict[str, np.ndarray]]:
        """Return batches of NumPy arrays by column.

        Args:
            batch_size: Rows of each; None for as many as are read at a time.
            drop_last: Leave the last batch out if it has fewer rows.
            others: What changes nothing of the batches; anything else is refused.

        Raises:
            TrainingError: An argument asks for what is only there on Ray workers; names it.
        """
        self._check("iter_batches", others)
        return self._batches(batch_size, drop_last)

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
            collate_fn: Makes a batch of the arrays by column.
            drop_last: As for ``iter_batches``.
            others: As for ``iter_batches``.

        Raises:
            TrainingError: An argument asks for what is only there on Ray workers; names it.
        """
        self._check("iter_torch_batches", others)
        if collate_fn is not None and (dtypes is not None or device != "auto"):
            raise ValueError("collate_fn can't be used with dtypes and device: it returns what they would apply to.")
        batches = self._batches(batch_size, drop_last)
        if collate_fn is not None:
            return map(collate_fn, batches)
        place = _device() if device == "auto" else device
        return (_tensors(batch, dtypes, place) for batch in batches)

    def __getattr__(self, name: str) -> Any:
        """Refuse by name what Ray's shards have and this lacks."""
        if name in LACKING:
            raise TrainingError(f"the shard '{self._name}' has no {name} with num_workers=0.", ON_WORKERS)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _check(self, method: str, others: Mapping[str, Any]) -> None:
        for name, value in others.items():
            if name not in NO_EFFECT and not any(value is one or value == one for one in DEFAULTS.get(name, ())):
                raise TrainingError(
                    f"{method}({name}={value!r}) of the shard '{self._name}' is not understood with num_workers=0.",
                    ON_WORKERS,
                )

    def _batches(self, batch_size: int | None, drop_last: bool) -> Iterator[dict[str, np.ndarray]]:
        if batch_size is None:
            yield from (dict(columns) for columns in self._split.own_rows(0, 1) if _num_rows(columns))
            return
        rest: list[Columns] = []
        for columns in self._split.own_rows(0, 1):
            rest.append(columns)
            if sum(map(_num_rows, rest)) < batch_size:
                continue
            rows = joined(rest)
            whole = _num_rows(rows) // batch_size * batch_size
            for begin in range(0, whole, batch_size):
                yield dict(take(rows, slice(begin, begin + batch_size)))
            rest = [take(rows, slice(whole, None))]
        if rest and not drop_last and sum(map(_num_rows, rest)):
            yield dict(joined(rest))


def _num_rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _device() -> Any:
    import ray.train.torch

    return ray.train.torch.get_device()


def _tensors(batch: dict[str, np.ndarray], dtypes: Any, device: Any) -> dict[str, torch.Tensor]:
    import torch

    def dtype(name: str) -> Any:
        return dtypes.get(name) if isinstance(dtypes, Mapping) else dtypes

    # A copy: what shares the memory of the split must not be changed in place by a loop.
    return {name: torch.as_tensor(np.array(values), dtype=dtype(name), device=device) for name, values in batch.items()}
