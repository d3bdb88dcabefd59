"""Labels of Hugging Face data sets: the numbers of classes that have names, which splits may number differently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.splitting.left_out import read_for
from rtrain.errors import DatasetError


class HasLabel(Protocol):
    """The keys that name the labels."""

    @property
    def path(self) -> str:
        """The data set."""

    @property
    def label(self) -> str | None:
        """The column; None: there is none."""


def arrow_columns(part: Any, columns: Sequence[str]) -> Any:
    """Return these columns as an Arrow table, in the order that the data set shows."""
    return part.select_columns(list(columns)).with_format("arrow")[:]


def labelled(parts: Mapping[str, Any], conf: HasLabel, others: Collection[str] | None = None) -> dict[str, Any]:
    """Return columns of all splits as ``arrow_columns`` does, with classes numbered as in train.

    Tags that number no class, such as -1, are missing.

    Args:
        parts: The splits.
        conf: The label's name.
        others: Columns to return with the label; None: all.

    Raises:
        DatasetError: A split has a class that train does not know.
    """
    tables, numbers = {}, numbers_of(parts, conf)
    for split, part in parts.items():
        wanted = [name for name in part.column_names if others is None or name == conf.label or name in others]
        table = arrow_columns(part, wanted)
        with read_for(split):
            tables[split] = numbers[split](table) if split in numbers else table
    return tables


@dataclass(frozen=True)
class ClassNumbers:
    """Numbers the classes of a split as train does."""

    label: str
    names: tuple[str, ...]
    """What the split calls its numbers."""
    numbers: tuple[int | None, ...]
    """That train has for them; None where it has none."""
    where: str
    """The split, or one of its files, for messages."""

    def __call__(self, table: pa.Table, first_row: int = 0) -> pa.Table:
        """Return the table with the numbers of train, of which ``first_row`` rows come before it.

        Raises:
            DatasetError: It has a class that train does not know, or a label that is not a class.
        """
        codes = table[self.label].combine_chunks()
        numbered = _taken(codes, pa.array(self.numbers, pa.int64()))
        self._check_known(codes, numbered)
        self._check_classes(codes, first_row)
        return _with_label(table, self.label, numbered)

    def _check_known(self, codes: pa.Array, numbered: pa.Array) -> None:
        """Raise a DatasetError if a number of a class became none."""
        if pa.types.is_nested(codes.type):
            codes, numbered = codes.flatten(), numbered.flatten()
        lost = codes.filter(pc.and_(_is_code(codes, len(self.names)), pc.is_null(numbered)))
        if len(lost):
            message = f"{self.where} has the class {self.names[lost[0].as_py()]!r}, which split 'train' lacks."
            raise DatasetError(message, "Use the same classes for the label of both.")

    def _check_classes(self, codes: pa.Array, first_row: int) -> None:
        """Raise a DatasetError if a number is that of no class, as -1 in test splits without labels; tags may be."""
        if pa.types.is_nested(codes.type):
            return
        other = pc.invert(_is_code(codes, len(self.names)))
        count = pc.sum(other).as_py() or 0
        if count:
            row = other.index(True).as_py()
            place, value = f"{self.where}: row {first_row + row + 1}", f"{self.label}={codes[row]}"
            also = f", and {count - 1:,} more" if count > 1 else ""
            raise DatasetError(f"{place} has {value}, which is not a class{also}.", "Remove such rows.")


def numbers_of(parts: Mapping[str, Any], conf: HasLabel) -> dict[str, ClassNumbers]:
    """Return what numbers the classes of each split whose label has names of classes."""
    if conf.label is None:
        return {}
    found = {}
    known = class_names(parts["train"].features.get(conf.label))
    for split, part in parts.items():
        names = class_names(part.features.get(conf.label))
        if names:
            numbers = [known.index(name) if name in known else None for name in names] if known else range(len(names))
            found[split] = ClassNumbers(conf.label, tuple(names), tuple(numbers), f"{conf.path}: split '{split}'")
    return found


def feature_classes(parts: Mapping[str, Any], features: Collection[str]) -> dict[str, list[str]]:
    """Return the names of the classes of features that are numbers of classes, as all splits have them.

    Raises:
        DatasetError: Splits number the classes of a feature differently: equal numbers would mean different things.
    """
    found: dict[str, list[str]] = {}
    for split, part in parts.items():
        of_split = {name: names for name, names in classes_of(part).items() if name in features}
        check_feature_classes(of_split, found, f"split '{split}'", "train")
        found |= of_split
    return found


def classes_of(part: Any) -> dict[str, list[str]]:
    """Return the names of the classes of each column that is numbers of classes, or lists of them."""
    return {name: names for name, kind in part.features.items() if (names := class_names(kind))}


def check_feature_classes(
    found: Mapping[str, Sequence[str]], known: Mapping[str, Sequence[str]], what: str, other: str
) -> None:
    """Raise a DatasetError if the classes of a feature are numbered otherwise than in what is known."""
    for name in found.keys() & known.keys():
        if list(found[name]) != list(known[name]):
            message = f"feature '{name}' is the number of a class, and {what} numbers them otherwise than {other}."
            raise DatasetError(message, "Save it with the same ClassLabel in both, or with the names as text.")


def _with_label(table: Any, label: str, values: pa.Array) -> Any:
    return table.set_column(table.column_names.index(label), label, values)


def named_labels(part: Any, conf: HasLabel, known: Sequence[str] | None) -> Any:
    """Return the columns of new rows with the names of classes as labels.

    Args:
        part: The rows; their labels may be missing.
        conf: The label's name.
        known: What training called the classes, also where numbers have no names; None if they had none.
    """
    label, table = conf.label, arrow_columns(part, part.column_names)
    if not known or label is None or label not in table.column_names or not _are_codes(table[label].type):
        return table
    names = pa.array(class_names(part.features[label]) or known, pa.string())
    codes = table[label].combine_chunks()
    found = _taken(codes, names)
    if not pa.types.is_nested(codes.type):  # a number beyond the names stays what it is, and -1 stands for no label
        found = pc.if_else(pc.greater_equal(codes, len(names)), codes.cast(pa.string()), found)
    return _with_label(table, label, found)


def _are_codes(kind: pa.DataType) -> bool:
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_integer(kind))


def _taken(codes: pa.Array, values: pa.Array) -> pa.Array:
    """Return the values at the numbers of classes, or lists of them; null for those of no class."""
    if pa.types.is_list(codes.type) or pa.types.is_large_list(codes.type):
        build = pa.ListArray if pa.types.is_list(codes.type) else pa.LargeListArray
        offsets = pc.subtract(codes.offsets, codes.offsets[0])
        return build.from_arrays(offsets, _taken(codes.flatten(), values), mask=codes.is_null())
    return values.take(pc.if_else(_is_code(codes, len(values)), codes, None))


def _is_code(codes: pa.Array, num_classes: int) -> pa.Array:
    return pc.and_(pc.greater_equal(codes, 0), pc.less(codes, num_classes))


def class_names(kind: Any) -> list[str] | None:
    """Return the names of the classes of a label's type, or of lists of it."""
    while kind is not None and not hasattr(kind, "names") and hasattr(kind, "feature"):
        kind = kind.feature
    return getattr(kind, "names", None)
