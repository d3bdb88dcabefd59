"""Print the seconds of a pass over a table of Parquet and the megabytes that the process took, as JSON.

Usage: streamed.py SIDE FILE. Sides: ``rtrain``; ``iter_torch_batches`` of Ray Data as documented, with a shuffle
buffer; ``DataLoader`` over row groups that pyarrow reads. Each shuffles, in batches of 1,024 rows of float32.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from pyarrow import parquet
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

BATCH_SIZE = 1024
SHUFFLED_ROWS = 10_000


def rtrain(file: str) -> Callable[[], int]:
    """Return what makes a pass by rtrain and returns the number of rows."""
    from rtrain.config.targets.builder import Builder
    from rtrain.datasets.base import EpochPlan
    from rtrain.datasets.conf import TableSplitConf
    from rtrain.datasets.registry import confs, load_source
    from rtrain.trainers.torch.config import Conf
    from rtrain.trainers.torch.inputs.transforms import open_loader
    from rtrain.trainers.torch.ranks import TorchRanks

    table = confs()["parquet"](
        path=file,
        label="y",
        memory="stream",
        num_shuffle_rows=SHUFFLED_ROWS,
        normalize=False,
        split=TableSplitConf(test=0),
    )
    dataset = load_source("parquet").load(table)
    optimizer = {"_target_": "torch.optim.SGD", "lr": 0.1}
    conf = Conf(model={"_target_": "torch.nn.Identity"}, optimizer=optimizer, max_epochs=1)
    ranks = TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    loader = open_loader(dataset.splits["train"], dataset.info, ranks, conf, Builder(()), training=True)
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=BATCH_SIZE, seed=0, epoch=0)
    return lambda: sum(len(step.y) for step in loader.steps(plan))


def iter_torch_batches(file: str) -> Callable[[], int]:
    """Return the same by Ray Data."""
    import ray

    ray.init(log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    batches = ray.data.read_parquet(file).iter_torch_batches(
        batch_size=BATCH_SIZE, local_shuffle_buffer_size=SHUFFLED_ROWS
    )
    return lambda: sum(len(_features(batch)) for batch in batches)


def _features(batch: dict[str, Tensor]) -> Tensor:
    """Return (rows, features), as a model takes them."""
    return torch.stack([column for name, column in batch.items() if name != "y"], 1)


class RowGroups(IterableDataset[tuple[Tensor, Tensor]]):
    """Batches of a Parquet file, whose row groups come in random order, and their rows too."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield x and y."""
        file, worker, draw = parquet.ParquetFile(self._file), get_worker_info(), np.random.default_rng(0)
        for group in draw.permutation(file.num_row_groups)[worker.id :: worker.num_workers]:
            table = file.read_row_group(group)
            y = table.column("y").to_numpy()
            x = np.column_stack([table.column(name).to_numpy() for name in table.column_names if name != "y"])
            order = draw.permutation(len(y))
            for start in range(0, len(y), BATCH_SIZE):
                rows = order[start : start + BATCH_SIZE]
                yield torch.from_numpy(x[rows]), torch.from_numpy(y[rows])


def data_loader(file: str) -> Callable[[], int]:
    """Return the same by a DataLoader with one process, as rtrain reads in one thread."""
    loader = DataLoader(RowGroups(file), batch_size=None, num_workers=1, prefetch_factor=16)
    return lambda: sum(len(y) for _, y in loader)


SIDES = {"rtrain": rtrain, "iter_torch_batches": iter_torch_batches, "DataLoader": data_loader}


def main(side: str, file: str) -> None:
    """Measure one side."""
    make_pass = SIDES[side](file)
    began = time.perf_counter()
    if make_pass() != parquet.read_metadata(file).num_rows:
        sys.exit("a pass has lost rows")
    seconds = time.perf_counter() - began
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps([seconds, peak * 1024 / 1e6]))


if __name__ == "__main__":
    main(*sys.argv[1:])
