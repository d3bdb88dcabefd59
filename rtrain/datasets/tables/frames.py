"""Frames of pandas, and arrays by column, as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rtrain.datasets.conf import is_dropped
from rtrain.errors import DatasetError, first_line

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa


def table_of_pandas(frame: pd.DataFrame, where: str, drop: Sequence[str] = ()) -> pa.Table:
    """Return a frame as a table without its index; a name of several columns stays the name of several.

    Sparse columns become dense, and intervals categories that are called by their text. Columns that can't be read
    are empty where ``drop``, patterns of names, leaves them out anyway.

    Raises:
        DatasetError: Arrow has no type for the values of a column; names it.
    """
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    columns = [arrow_column(name, _plain(frame.iloc[:, place]), where, drop) for place, name in enumerate(names)]
    return pa.table(columns, names=names)


def arrow_column(name: str, values: Any, where: str, drop: Sequence[str] = ()) -> pa.Array | pa.ChunkedArray:
    """Return an array, or a column of pandas, as a column of Arrow; see ``table_of_pandas``.

    Raises:
        DatasetError: Arrow has no type for its values; names the column.
    """
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if is_dropped(name, drop):
            return pa.nulls(len(values))
        raise _unreadable(name, values, where, error) from error


def table_of_arrays(columns: Mapping[str, np.ndarray], where: str, drop: Sequence[str] = ()) -> pa.Table:
    """Return arrays by column as a table; see ``table_of_pandas``.

    Raises:
        DatasetError: An array has more than one dimension, they differ in length, or Arrow has no type for one.
    """
    import pyarrow as pa

    check_lengths(columns, where)
    for name, values in columns.items():
        if values.ndim > 1 and not is_dropped(name, drop):
            message = f"{where}: column '{name}' has the shape {values.shape}, and a column has one value for each row."
            raise DatasetError(message, "Return inputs of more dimensions as x: {x: ..., y: ...}")
    return pa.table({name: arrow_column(name, values, where, drop) for name, values in columns.items()})


def check_lengths(columns: Mapping[str, np.ndarray], where: str) -> None:
    """Raise a DatasetError if arrays by column differ in their number of rows."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DatasetError(f"{where}: the columns differ in length: {lengths}.")


def arrays_by_name(found: Mapping[Any, Any], where: str, drop: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return what a mapping holds as arrays with a value for each row; see ``table_of_pandas``.

    Raises:
        DatasetError: One is not an array, is a sparse matrix, or has rows that differ in shape; names it.
    """
    return {str(name): _as_array(str(name), values, where, drop) for name, values in found.items()}


def is_sparse(values: Any) -> bool:
    """Return whether this is a sparse matrix of scipy, which numpy would hold as a single object."""
    return hasattr(values, "toarray")


def _as_array(name: str, values: Any, where: str, drop: Sequence[str]) -> np.ndarray:
    import numpy as np

    if is_sparse(values):
        raise DatasetError(f"{where}: '{name}' is sparse ({type(values).__name__}).", "Return it dense: .toarray()")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        if is_dropped(name, drop):
            return np.empty(len(values), object)
        raise DatasetError(f"{where}: '{name}' can't be read as an array: {first_line(error)}") from error
    if not array.ndim:
        raise DatasetError(f"{where}: '{name}' is a {type(values).__name__}, not an array with a value for each row.")
    return array


def _plain(column: pd.Series) -> pd.Series:
    """Return a column whose type Arrow lacks as one of a type that means the same."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.SparseDtype):
        return column.sparse.to_dense()
    if isinstance(kind, pd.IntervalDtype):
        column = column.astype("category")
    if isinstance(column.dtype, pd.CategoricalDtype) and isinstance(column.cat.categories.dtype, pd.IntervalDtype):
        return column.cat.rename_categories([str(one) for one in column.cat.categories])
    return column


def _unreadable(name: str, values: Any, where: str, error: Exception) -> DatasetError:
    """Return the error about a column that can't be one of Arrow."""
    import pandas as pd

    kinds = sorted({type(one).__name__ for one in pd.Series(values).dropna()})
    column = f"{where}: column '{name}'"
    if len(kinds) > 1:
        hint = f"Convert them to one type, for example text: frame[{name!r}] = frame[{name!r}].astype(str)"
        return DatasetError(f"{column} contains values of different types: {', '.join(kinds)}.", hint)
    if values.dtype.kind == "c":
        return DatasetError(
            f"{column} contains complex numbers.", "Return their parts, .real and .imag, as two columns."
        )
    held = kinds[0] if values.dtype == object and kinds else values.dtype
    hint = f"Convert it to numbers or text, or leave it out: frame.drop(columns=[{name!r}])"
    return DatasetError(f"{column} contains values of the type {held}: {first_line(error)}", hint)


def table_of_polars(frame: Any, where: str, drop: Sequence[str] = ()) -> pa.Table:
    """Return a frame, collected if it is lazy, as a table; see ``table_of_pandas``.

    Raises:
        DatasetError: A column holds Python objects; names it.
    """
    import polars as pl

    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    unread = [name for name, kind in frame.schema.items() if kind == pl.Object]
    frame = frame.with_columns(pl.lit(None).alias(name) for name in unread if is_dropped(name, drop))
    objects = [name for name in unread if not is_dropped(name, drop)]
    if objects:
        hint = f"Convert it to numbers or text, or leave it out: frame.drop({objects[0]!r})"
        raise DatasetError(f"{where}: column '{objects[0]}' contains Python objects, which can't be read.", hint)
    return frame.to_arrow()
