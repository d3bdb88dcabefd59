"""What every dataset source gives the trainers: a description, and the rows of each split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from rtrain.config.targets.builder import Builder
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

Columns: TypeAlias = "Mapping[str, np.ndarray]"
"""Rows in memory, column by column.

``x``: (rows, *input_shape) of ``DatasetInfo.dtype``; ``y``: (rows,) int64 classes, or targets of
``DatasetInfo.target_dtype``, or (rows, length) int64 tokens or tags where each place of a sequence is predicted.
Optional: ``weight`` (rows,) float32; ``group`` (rows,) int64, equal for the consecutive rows of one query;
``base_margin`` (rows,) or (rows, classes) float32.

Of texts, ``x`` is (rows,) of dtype object: a str per row, or a list of words (list of str) for token classification.
Then ``y`` is as above for classes and numbers; for token classification (rows,) of dtype object, an int64 array of tags
per row, one for each word; for language modelling the same array as ``x``, for the trainer to tokenize.
"""

TASKS = ("classification", "regression", "ranking", "token-classification", "language-modeling")


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What a trainer has to know about a dataset before it sees a row."""

    name: str
    task: str
    """One of ``TASKS``; empty where only a loop reads the rows. Classes count from 0; the targets of a ranking are
    grades of relevance, float32."""
    input_shape: tuple[int, ...]
    """Shape of one row of ``x``: (channels, height, width) for images, (features,) for tables, (length,) for tokens,
    () for texts."""
    dtype: str = "float32"
    """Of ``x``: ``float32`` or ``float64`` (NaN is a missing value), ``uint8`` (images), ``int64`` (tokens), or
    ``object`` (texts; see ``Columns``)."""
    original_sizes: bool = False
    """Images differ in height and width, so that ``x`` is (rows,) of dtype object, a (channels, height, width) array of
    ``dtype`` per row; ``input_shape`` is that of one of them."""
    num_classes: int | None
    """Number of classes, of tags, or of different tokens; None for regression, ranking, and texts to model."""
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Features that are categories, with the names of their codes 0, 1, ...; a value not among them is NaN in ``x``."""
    missing: tuple[str, ...] = ()
    """Features that have missing values, categories not counted; of streamed data those that its statistics met."""
    num_missing: Mapping[str, int] = field(default_factory=dict)
    """Of tables, how many values of a feature are missing, for those that lack some: of all rows that were read, filled
    in or not; of streamed data of the train rows that its statistics met."""
    target_dtype: str = "float32"
    """Of the targets of a regression or ranking; ``float64`` where float32 would change whole numbers or merge some."""
    merged_targets: bool = False
    """float32 would make many different targets equal, or infinite: it takes a trainer that computes in float64."""
    columns: tuple[str, ...] = ()
    """Optional columns that a split has: ``weight``, ``group``, ``base_margin``."""
    num_rows: Mapping[str, int]
    """Rows per split."""
    num_skipped: int = 0
    """Files that could not be read and were left out, with ``on_error: skip``."""
    fingerprint: str
    """sha256 over the content (in memory) or over names, sizes and times of the files (streamed)."""
    memory: str
    """``resident`` or ``stream``: what was chosen."""
    memory_reason: str
    """Why, in a few words, e.g. ``0.9 MB fit in 12.4 GB of free memory``."""
    num_ranges: int = 0
    """Ranges of bytes that large CSV and JSON files are streamed in, which the order of shuffled rows depends on."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    """Per channel (images) or feature; applied to each batch as ``(x - mean) / std`` after uint8 was divided by 255."""
    own_columns: Mapping[str, str] = field(default_factory=dict)
    """Names and types of the columns that rows have in place of ``x`` and ``y``: of data that only a loop reads."""
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of several data sets, each of which is a split: source, columns, fingerprint and memory of each."""

    def __post_init__(self) -> None:
        names = set[str]()
        for name in self.class_names:
            if name in names:
                message = f"dataset '{self.name}' has two classes named '{name}'."
                raise DatasetError(message, "Give each class a unique name.")
            names.add(name)


@dataclass(frozen=True, kw_only=True)
class ShardLayout:
    """How workers share a pass: step ``s`` takes rows ``s * rows_per_step`` and on, cut as ``share_of`` says."""

    num_workers: int
    rows_per_step: int

    def own_rows(self, rank: int, rows: int) -> int:
        """Return how many of the first ``rows`` rows of a pass are those of one worker, if the pass ends there."""
        whole, rest = divmod(rows, self.rows_per_step)
        (first, last), (begin, end) = (share_of(one, rank, self.num_workers) for one in (self.rows_per_step, rest))
        return whole * (last - first) + end - begin


@dataclass(frozen=True, kw_only=True)
class EpochPlan:
    """One pass over a split, as one worker sees it."""

    rank: int
    world_size: int
    global_batch_size: int
    """Rows that all workers together take per step."""
    seed: int
    epoch: int = 0
    shuffle: bool = True
    skip_rows: int = 0
    """Rows of all workers at the beginning that were taken before an interruption and are left out."""
    began: ShardLayout | None = None
    """How the pass was shared when it began, if it was interrupted: the order of streamed rows follows from it."""

    @property
    def layout(self) -> ShardLayout:
        """How this pass is shared."""
        return ShardLayout(num_workers=self.world_size, rows_per_step=self.global_batch_size)


@dataclass(frozen=True)
class Batch:
    """The rows of one worker in one step. ``x`` may have no rows when another worker still has some."""

    x: np.ndarray
    y: np.ndarray
    num_global: int
    """Rows of all workers together in this step."""
    weight: np.ndarray | None = None
    """(rows,) float32, where the dataset has weights."""


class Split(ABC):
    """One split of a dataset. It is pickled to every worker, so that it is small or shares its memory."""

    num_rows: int

    @abstractmethod
    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass; over all workers each row comes exactly once.

        As many batches on each worker, without rows where there are none left for it; ``plan.layout`` says how many
        rows each of them has.
        """

    @abstractmethod
    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield this worker's share of the rows, some at a time, the same ones and in the same order at every call.

        Over all workers each row comes exactly once, those of one ``group`` on one worker. One whose share is empty
        gets columns without rows, which have shapes. With one worker it is all rows in the order of the data.
        """


def concatenated(parts: Sequence[Columns]) -> Columns:
    """Return the rows of all parts in one piece; a single part as it is."""
    import numpy as np

    return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def take(columns: Columns, rows: np.ndarray | slice) -> Columns:
    """Return some of the rows."""
    return {name: values[rows] for name, values in columns.items()}


def objects(rows: Sequence[Any]) -> np.ndarray:
    """Return (rows,) of dtype object; lists and arrays stay what they are."""
    import numpy as np

    found = np.empty(len(rows), object)
    for index, row in enumerate(rows):
        found[index] = row
    return found


def share_of(count: int, rank: int, size: int) -> tuple[int, int]:
    """Return where the part of one of ``size`` workers begins and ends, of ``count`` rows cut as evenly as possible."""
    return count * rank // size, count * (rank + 1) // size


def take_rows(columns: Columns, rows: np.ndarray | slice, num_global: int) -> Batch:
    """Return some of the rows as a batch."""
    weight = columns.get("weight")
    return Batch(columns["x"][rows], columns["y"][rows], num_global, None if weight is None else weight[rows])


def step_rows(num_rows: int, plan: EpochPlan) -> Iterator[tuple[np.ndarray, int]]:
    """Yield for each step of a pass the rows of this worker and the number of rows of all workers.

    Step ``s`` takes rows ``s * global_batch_size`` and on of what is left of the epoch's permutation, cut into
    ``world_size`` contiguous parts that differ by at most one row: the same steps for any number of workers.
    """
    import numpy as np

    order = np.arange(num_rows)
    if plan.shuffle:
        order = np.random.default_rng((plan.seed, plan.epoch)).permutation(num_rows)
    for start in range(plan.skip_rows, num_rows, plan.global_batch_size):
        step = order[start : start + plan.global_batch_size]
        yield step[slice(*share_of(len(step), plan.rank, plan.world_size))], len(step)


class IndexedSplit(Split):
    """A split whose rows can be read one by one, by their numbers and in any process."""

    @abstractmethod
    def inputs(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yield ``x`` of each of some rows."""

    @abstractmethod
    def batch(self, rows: np.ndarray, x: Any, num_global: int) -> Batch:
        """Return some rows, whose ``x`` is known, as a batch."""

    def indices(self, plan: EpochPlan) -> Iterator[tuple[np.ndarray, int]]:
        """Yield for each step the rows of this worker and the number of rows of all workers."""
        return step_rows(self.num_rows, plan)

    def steps(self, plan: EpochPlan) -> Iterator[tuple[np.ndarray, Iterator[np.ndarray], int]]:
        """Yield what ``indices`` does, and ``x`` of each row; all of it has to be taken before the next step."""
        for rows, num_global in self.indices(plan):
            yield rows, self.inputs(rows), num_global


def num_rows_of(columns: Columns) -> int:
    """Return the number of rows; raise a DatasetError if the columns differ in it."""
    counts = {name: len(values) for name, values in columns.items()}
    if len(set(counts.values())) > 1:
        there = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise DatasetError(f"the columns of a split differ in their number of rows: {there}.", "Fix the source.")
    return next(iter(counts.values()))


class ResidentSplit(IndexedSplit):
    """A split held in memory by every worker, shuffled by a permutation that all workers agree on."""

    def __init__(self, columns: Columns) -> None:
        import numpy as np

        self.num_rows = num_rows_of(columns)
        self.columns = {name: np.ascontiguousarray(values) for name, values in columns.items()}

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        for rows, num_global in self.indices(plan):
            yield self.batch(rows, self.columns["x"][rows], num_global)

    def inputs(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        return iter(self.columns["x"][rows])

    def batch(self, rows: np.ndarray, x: Any, num_global: int) -> Batch:
        weight = self.columns.get("weight")
        return Batch(x, self.columns["y"][rows], num_global, None if weight is None else weight[rows])

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield one contiguous part, as views: nothing is copied."""
        yield take(self.columns, slice(*map(self._border, share_of(self.num_rows, rank, world_size))))

    def _border(self, row: int) -> int:
        """Return the first row at or after ``row`` that begins a group; ``row`` itself where there are no groups."""
        import numpy as np

        group = self.columns.get("group")
        if group is None or row in (0, self.num_rows):
            return row
        same = group[row:] == group[row - 1]
        return row + (len(same) if same.all() else int(np.argmin(same)))


@dataclass(frozen=True)
class Dataset:
    """A dataset that is ready to train on: ``train``, and ``val`` and ``test`` where there are some."""

    info: DatasetInfo
    splits: Mapping[str, Split]
    encoding: Mapping[str, Any] = field(default_factory=dict)
    """How raw rows became ``x``: columns, classes and categories, as plain data that JSON can hold. It is kept
    in every checkpoint, and ``Source.open_rows`` gets it back to prepare new rows for a prediction."""


@dataclass(frozen=True)
class RawChunk:
    """Some rows to predict, in the order of the data."""

    x: np.ndarray
    """Prepared as in training."""
    y: np.ndarray | None
    """Coded as in training; None where labels are not asked for, or the data has none."""
    kept: Mapping[str, Any]
    """Further columns for the output, by name, such as ids and file names; numpy or Arrow arrays, (rows,)."""
    group: np.ndarray | None = None
    """Of a ranking, with the labels: (rows,) int64, equal for the rows of one query."""
    base_margin: np.ndarray | None = None
    """Scores that the model starts from, where it was trained with some: (rows,) or (rows, classes) float32."""
    weight: np.ndarray | None = None
    """With the labels, how much each row counts: (rows,) float32."""
    raw: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """All columns as they are, where training had no dataset: numpy or Arrow arrays, (rows,)."""
    categories: Mapping[str, tuple[int, int]] = field(default_factory=dict, kw_only=True)
    """By column, how many of its values are categories that training never saw, and how many values there are."""
    place: tuple[str, int] = field(default=("", 0), kw_only=True)
    """For messages: the file, empty where it isn't known, and how many of its rows come before these."""


class RowReader(Protocol):
    """Reads rows to predict piece by piece; pickled to the processes that predict."""

    @property
    def pieces(self) -> Sequence[Any]:
        """Keys of the parts that can be read by themselves, in the order of the data."""

    def read(self, piece: Any, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a piece, some at a time.

        Args:
            piece: One of ``pieces``.
            with_labels: Give ``y`` too, to evaluate. Without, labels are not looked at and may hold anything.

        Raises:
            DatasetError: A value is unusable; names the row. Of tables with labels: one is missing or of no class.
        """


class Source(ABC):
    """A kind of dataset that configs can name with ``dataset.type``."""

    Conf: ClassVar[type]
    """Dataclass of the source's keys. Importing it imports no reader library."""

    WholeConf: ClassVar[type | None] = None
    """Dataclass of the keys where all rows are read with the columns that the data has: for ``load_whole``. None: the
    rows have ``x`` and ``y``, and ``Conf`` serves."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable for the source to work."""

    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them, where its core doesn't."""

    may_use_ray: ClassVar[bool] = False
    """Whether ``load`` may use Ray, so that a cluster that is starting has to be ready before."""

    runs_code: ClassVar[bool] = False
    """Whether ``load`` runs a function or a query from the conf. Not allowed for another user's checkpoint."""

    has_hub: ClassVar[bool] = False
    """Whether a ``path`` that is not a folder here is fetched from a hub."""

    builder: Builder = Builder()
    """Imports what the config names."""

    @property
    def table_format(self) -> type | None:
        """The ``TableFormat`` of the files that it reads; None: they are not tables with a column for the label."""
        return None

    @abstractmethod
    def load(self, conf: Any) -> Dataset:
        """Read, or open for streaming, what ``conf`` names.

        Raises:
            DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
        """

    def load_whole(self, conf: Any) -> Dataset:
        """Read, or open for streaming, all rows with the data's own columns, as the split ``train``.

        Args:
            conf: A ``WholeConf``.

        Raises:
            DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
        """
        raise NotImplementedError

    def open_rows(self, conf: Any, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all rows that ``conf`` names to predict them; labels may be missing, splits are not made.

        Args:
            conf: The conf of training, with what the user changed: another path, say.
            encoding: ``Dataset.encoding`` of training.

        Returns:
            A reader; None if the source's rows can only be had by ``load``, split by split.
        """
        return None
