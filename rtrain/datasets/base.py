"""What every dataset source gives the trainers: a description, and the rows of each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Columns: TypeAlias = "Mapping[str, np.ndarray]"
"""One split in memory.

``x``: (rows, *input_shape), float32 or uint8; ``y``: (rows,), int64 classes or float32 targets.
"""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What a trainer has to know about a dataset before it sees a row."""

    name: str
    task: str
    """``classification`` (``y`` counts from 0) or ``regression``."""
    input_shape: tuple[int, ...]
    """Shape of one row of ``x``: (channels, height, width) for images, (features,) for tables."""
    num_classes: int | None
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    num_rows: Mapping[str, int]
    """Rows per split."""
    fingerprint: str
    """sha256 over the content (in memory) or over names, sizes and times of the files (streamed)."""
    memory: str
    """``resident`` or ``stream``: what was chosen."""
    memory_reason: str
    """Why, in a few words, e.g. ``0.9 MB fit in 12.4 GB of free memory``."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    """Per channel (images) or feature; applied to each batch as ``(x - mean) / std`` after uint8 was divided by 255."""


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass over a split, as one worker sees it."""

    rank: int
    world_size: int
    global_batch_size: int
    """Rows that all workers together take per step."""
    seed: int
    epoch: int = 0
    shuffle: bool = True
    skip_steps: int = 0
    """Steps at the beginning that were done before an interruption and are left out."""


@dataclass(frozen=True)
class Batch:
    """The rows of one worker in one step. ``x`` may have no rows when another worker still has some."""

    x: np.ndarray
    y: np.ndarray
    num_global: int
    """Rows of all workers together in this step; -1 when only the workers together can know (streamed data)."""


class Split(ABC):
    """One split of a dataset. It is pickled to every worker, so that it is small or shares its memory."""

    num_rows: int

    @abstractmethod
    def batches(self, one: Pass) -> Iterator[Batch]:
        """Yield this worker's batches of one pass; over all workers each row comes exactly once."""


def step_rows(num_rows: int, one: Pass) -> Iterator[tuple[np.ndarray, int]]:
    """Yield for each step of a pass the rows of this worker and the number of rows of all workers.

    Step ``s`` takes rows ``s * global_batch_size`` and on of the epoch's permutation, cut into ``world_size``
    contiguous parts that differ by at most one row: the same steps for any number of workers.
    """
    import numpy as np

    order = np.arange(num_rows)
    if one.shuffle:
        order = np.random.default_rng((one.seed, one.epoch)).permutation(num_rows)
    first = one.skip_steps * one.global_batch_size
    for start in range(first, num_rows, one.global_batch_size):
        step = order[start : start + one.global_batch_size]
        low, high = (len(step) * r // one.world_size for r in (one.rank, one.rank + 1))
        yield step[low:high], len(step)


class ResidentSplit(Split):
    """A split held in memory by every worker, shuffled by a permutation that all workers agree on."""

    def __init__(self, columns: Columns) -> None:
        import numpy as np

        self.columns = {name: np.ascontiguousarray(values) for name, values in columns.items()}
        self.num_rows = len(columns["y"])

    def indices(self, one: Pass) -> Iterator[tuple[np.ndarray, int]]:
        """Yield for each step the rows of this worker and the number of rows of all workers."""
        return step_rows(self.num_rows, one)

    def batches(self, one: Pass) -> Iterator[Batch]:
        for rows, num_global in self.indices(one):
            yield Batch(self.columns["x"][rows], self.columns["y"][rows], num_global)


@dataclass(frozen=True)
class Dataset:
    """A dataset that is ready to train on: ``train``, and ``val`` and ``test`` where there are some."""

    info: DatasetInfo
    splits: Mapping[str, Split]


class Source(ABC):
    """A kind of dataset that configs can name with ``dataset.type``."""

    Conf: ClassVar[type]
    """Dataclass of the source's own keys; importing it imports no reader library."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable for the source to work."""

    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them, where its core doesn't."""

    @abstractmethod
    def load(self, conf: Any) -> Dataset:
        """Read, or open for streaming, what ``conf`` names.

        Raises:
            DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
        """
