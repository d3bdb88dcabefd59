"""The keys that several dataset sources share. The docstring under a field is the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rtrain.config.needs import Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.tables.preprocessor_conf import Preprocessors


@dataclass(kw_only=True)
class SplitConf:
    """Which shares of the train rows are kept back to measure with."""

    scalar: ClassVar[str] = "test"
    shares: ClassVar[tuple[str, ...]] = ("val", "test")

    val: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of rows for ``val``. null: the data's own val files, else none; 0: none at all."""

    test: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of rows for ``test``. null: the data's own test files, else 0.2 if there is no ``val``; 0: none at all."""


def _check_by_column(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value):
        return value
    if not isinstance(value, Mapping) or not isinstance(value.get("column"), str):
        raise ValueError("must be a column, or {column: ..., val: [...], test: [...]}")
    for name in set(value) - {"column"}:
        if name not in ("train", "val", "test") or not isinstance(value[name], list):
            raise ValueError(f"{name} can't be read: after column, train, val and test each name a list of values")
    if not value.get("val") and not value.get("test"):
        raise ValueError("must name values for val or test: {column: ..., test: [...]}")
    return value


def _check_columns(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if value is None or (isinstance(names, list) and names and all(isinstance(one, str) and one for one in names)):
        return value
    raise ValueError("must be a column, or a list of columns")


_VALUES = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
_NAMED = {
    "type": "object",
    "properties": {"column": {"type": "string"}, "train": _VALUES, "val": _VALUES, "test": _VALUES},
    "required": ["column"],
    "additionalProperties": False,
}
_NULL, _TEXT = {"type": "null"}, {"type": "string"}
_SEVERAL = {"type": "array", "items": _TEXT, "minItems": 1}
ByColumn = Annotated[Any, AfterValidator(_check_by_column), WithJsonSchema({"anyOf": [_NULL, _TEXT, _NAMED]})]
OneOrMoreColumns = Annotated[Any, AfterValidator(_check_columns), WithJsonSchema({"anyOf": [_NULL, _TEXT, _SEVERAL]})]


@dataclass(kw_only=True)
class TableSplitConf(SplitConf):
    """Which rows of a table are held out for evaluation. A column named here is not a feature, unless listed as one.

    Without ``by_*``, rows are chosen by what they hold: the same ones in any order of the rows.
    """

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("by_group", "by_time", "by_hash"),)

    by_group: str | None = None
    """Column whose equal values stay in one split; shares count its values, not rows."""

    by_time: str | None = None
    """Column of times or numbers: the oldest rows train, then comes ``val``, the newest are ``test``; equal times stay
    together, in the newer split."""

    by_hash: OneOrMoreColumns = None
    """Column, or columns, that name a row: its split depends on them and ``seed`` alone, so that it stays when
    rows come or go. Shares are only about right."""

    by_column: ByColumn = None
    """Column that says train, val (valid, validation) or test; or {column: fold, val: [3], test: [4]}, where all other
    values are train."""

    def __post_init__(self) -> None:
        ways = [name for name in ("by_group", "by_time", "by_hash") if getattr(self, name)]
        if len(ways) > 1:
            raise ValueError(f"{' and '.join(ways)} contradict each other: give one, and set the other to null")


def _check_normalize(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if not isinstance(value, Mapping) or set(value) != {"mean", "std"}:
        raise ValueError("must be true, false or {mean: [...], std: [...]}")
    for key in ("mean", "std"):
        numbers = value[key]
        if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
            raise ValueError(f"{key} must be a list of numbers")
    if not all(number > 0 for number in value["std"]):
        raise ValueError("std must hold numbers above 0")
    return value


_NUMBERS = {"type": "array", "items": {"type": "number"}}
_STATISTICS = {"type": "object", "properties": {"mean": _NUMBERS, "std": _NUMBERS}, "required": ["mean", "std"]}
Normalize = Annotated[
    Any, AfterValidator(_check_normalize), WithJsonSchema({"anyOf": [{"type": "boolean"}, _STATISTICS]})
]


SEEDED = Need(
    met=lambda way: way.conf.dataset.draws_rows,
    otherwise="no rows are drawn: all are used, and none are held out",
    instead="The training order and the initial weights depend on run.seed",
    keys=tuple(f"dataset.{key}" for key in ("type", "name", "split", "sample", "limit")),
    portable=True,
)


@dataclass(kw_only=True)
class SharesConf:
    """Which rows are used, and how they are split."""

    needs: ClassVar[Rules] = (SEEDED.of("seed"),)

    counterparts: ClassVar[Mapping[str, str]] = {"sample": "limit", "limit": "sample"}

    split: SplitConf = field(default_factory=SplitConf)
    """Shares of the train rows for ``val`` and ``test``; chosen by ``seed``, and per class where ``y`` is a class."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the split, of ``sample`` and of ``limit``. The order of training follows ``run.seed`` instead."""

    sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the rows to use, chosen by ``seed`` before the split, of each class alike; or whole groups, where rows
    have some. Each split that has its own files is sampled separately."""

    limit: Annotated[int, Field(ge=1)] | None = None
    """Most rows to use, chosen as those of ``sample`` are; the smaller of both counts."""

    @property
    def draws_rows(self) -> bool:
        """Whether ``seed`` decides which rows there are, in some split."""
        shares = self.split.val or self.split.test or (self.split.test is None and not self.split.val)
        return self.sample < 1 or self.limit is not None or bool(shares)


@dataclass(kw_only=True)
class RowsConf(SharesConf):
    """Which rows are used, how they are split, and whether inputs are normalized."""

    normalize: Normalize = True
    """true: inputs minus mean, by standard deviation, of the train split, per channel or feature; or {mean, std}."""


ARRAY_TASKS = ("auto", "classification", "regression", "ranking")


@dataclass(kw_only=True)
class ArraysConf(RowsConf):
    """Rows that are arrays of numbers."""

    task: Annotated[str, *one_of(*ARRAY_TASKS)] = "auto"
    """auto: a target of text, or of at most 100 different whole numbers, is a class; one with queries, a grade of
    relevance to rank by; any other one a number."""


STREAMED = Need(
    met=lambda way: way.conf.dataset.memory != "resident",
    otherwise="dataset.memory=resident keeps all rows in memory",
    instead="Stream the files: dataset.memory=stream",
    keys=("dataset.memory",),
    portable=True,
)
STREAMED_ROWS = replace(
    STREAMED,
    met=lambda way: way.info is None or way.info.memory == "stream",
    otherwise="the rows fit in memory and are kept there",
    keys=("dataset",),
    of_rows=True,
)


@dataclass(kw_only=True)
class MemoryConf:
    """Whether data is held in memory or streamed from its files."""

    needs: ClassVar[Rules] = (STREAMED.of("num_shuffle_rows"), STREAMED_ROWS.of("num_shuffle_rows"))

    memory: Annotated[str, *one_of("auto", "resident", "stream")] = "auto"
    """``resident`` holds all rows in memory, ``stream`` reads files each epoch; auto: by size against free memory."""

    num_shuffle_rows: Annotated[int, Field(ge=1)] = 10_000
    """Rows held back at a time to shuffle streamed data; files and their parts are shuffled too."""


def _check_channels(value: int) -> int:
    if value not in (1, 3):
        raise ValueError("must be 1 or 3")
    return value


@dataclass(kw_only=True)
class PixelsConf:
    """What encoded images become."""

    image_size: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)] | None = None
    """[height, width] that all images are resized to; null: the size of the first one."""

    channels: Annotated[int, AfterValidator(_check_channels), WithJsonSchema({"enum": [1, 3]})] = 3
    """Of images, 3: red, green and blue; 1: grey."""


def _check_path(value: Any) -> Any:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and all(isinstance(one, str) and one for one in value.values()):
        if "train" in value and set(value) <= {"train", "val", "test"}:
            return value
        raise ValueError("must name train, and may name val and test")
    raise ValueError("must be a file, a folder, a glob, or {train: ..., val: ..., test: ...}")


_PATHS = {"type": "object", "properties": dict.fromkeys(("train", "val", "test"), _TEXT)}
TablePath = Annotated[
    Any, AfterValidator(_check_path), WithJsonSchema({"anyOf": [_TEXT, {**_PATHS, "required": ["train"]}]})
]


DROPPING = Need(
    met=lambda way: _drops_some(way.conf.dataset),
    otherwise="dataset.features already names the columns to use",
    instead="Remove the others from dataset.features",
    keys=("dataset.features",),
)
CATEGORIES = Need(
    met=lambda way: way.info is None or bool(way.info.categories),
    otherwise="no feature is categorical",
    instead="Name the categorical ones: dataset.categorical=[COLUMN]",
    keys=("dataset",),
    of_rows=True,
)


def is_dropped(name: str, drop: Sequence[str]) -> bool:
    """Return whether ``dataset.drop``, patterns of names, leaves out a column."""
    return any(fnmatchcase(name, pattern) for pattern in drop)


def _drops_some(conf: Any) -> bool:
    """Tell whether there are features to drop: those that are named, or all columns without other uses."""
    return conf.features is None or any(is_dropped(name, conf.drop) for name in conf.features)


def _as_texts(value: Any) -> Any:
    """Return a value, or a list of some, as the texts that a file has for them."""
    values = value if isinstance(value, list) else [value]
    return [str(one) if type(one) in (int, float) else one for one in values]


_MARKS = {"type": "array", "items": {"anyOf": [_TEXT, {"type": "number"}]}}
NaValues = Annotated[list[str], BeforeValidator(_as_texts), WithJsonSchema(_MARKS)]
DTYPES = ("float32", "float64", "int32", "int64", "bool", "string", "category")


@dataclass(kw_only=True)
class ColumnsConf(RowsConf):
    """The columns of a table, wherever it comes from."""

    needs: ClassVar[Rules] = (*SharesConf.needs, DROPPING.of("drop"), CATEGORIES.of("max_unseen"))

    label: str
    """Column to predict."""

    features: list[str] | None = None
    """Columns to predict from; null: all that have no other use here."""

    drop: list[str] = field(default_factory=list)
    """Columns that are not features, by name or pattern: ``[comment, tmp_*]``."""

    split: TableSplitConf = field(default_factory=TableSplitConf)
    """Shares of the train rows for ``val`` and ``test``, and columns that decide."""

    categorical: list[str] | None = None
    """Features that are categories; null: those of text or of a dictionary type; []: none. Trees take them."""

    max_unseen: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Largest share of a category's values, of rows to predict or evaluate, that training never saw; they count as
    missing, and more of them are an error."""

    ids: list[str] = field(default_factory=list)
    """Columns that name a row, never features; written next to its prediction. []: all columns except features."""

    weight: str | None = None
    """Column that says how much a row counts in the loss."""

    group: str | None = None
    """Column whose equal values make a query of a ranking; a group is never split over splits or workers."""

    base_margin: list[str] = field(default_factory=list)
    """Columns with the scores that boosting starts from: one, or one per class."""

    dtype: Annotated[str, *one_of("float32", "float64")] = "float32"
    """Of the features in memory; float64 keeps large whole numbers and doubles as they are."""

    dtypes: dict[str, Annotated[str, *one_of(*DTYPES)]] | None = None
    """Columns to take as another type, before anything else: {zip: category, size: float32, id: string}."""

    task: Annotated[str, *one_of("auto", "classification", "regression", "ranking")] = "auto"
    """auto: a label of text, booleans or at most 100 different whole numbers is a class, any other one a number."""

    preprocessors: Preprocessors = field(default_factory=list)
    """Preprocessors of ``ray.data.preprocessors``, one after the other: ``{type: StandardScaler, columns: [a, b]}``.
    They learn from train alone, and come before ``categorical``, ``on_missing`` and ``normalize``."""

    na_values: NaValues = field(default_factory=list)
    """Texts and numbers that stand for missing values in any column: ``["?", -999]``. In columns of numbers of a CSV
    file, NA, null, NaN and the like do anyway."""

    on_missing: Annotated[str, *one_of("auto", "error", "keep", "mean")] = "auto"
    """Empty numbers: ``error`` stops with a message, ``keep`` takes them as NaN, ``mean`` fills in that of the train
    split; auto: trees keep them, other trainers stop."""

    # Whether files say what type a column has; else it is guessed from the texts of the first rows.
    has_types: ClassVar[bool] = True

    @property
    def untyped(self) -> tuple[str, ...]:
        """Categories that are read as text: a guess in another file could be another one."""
        names = () if self.has_types else self.categorical or ()
        return tuple(name for name in names if name not in (self.dtypes or ()))

    @property
    def may_hold_marks(self) -> bool:
        """Whether a text such as NA, among categories, may stand for a missing value: nothing here says what it is."""
        return self.categorical is None


@dataclass(kw_only=True)
class LargeTableConf(ColumnsConf, MemoryConf):
    """A table that may be larger than memory."""

    needs: ClassVar[Rules] = (*ColumnsConf.needs, *MemoryConf.needs)


@dataclass(kw_only=True)
class TableConf(LargeTableConf):
    """A table in one or many files. With ``memory: stream``, the shares of ``split`` are only about right.

    Streaming takes one pass over the label column before training, to count rows and find the classes, and a second
    one over the features for ``normalize: true`` and ``on_missing: mean``.
    """

    path: TablePath
    """File, folder or glob, or {train: ..., test: ...}. In a folder, what is named train, val or test is that split."""
