"""Rows from a function of the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.calls.plain import is_frame
from rtrain.config.did_you_mean import there_are
from rtrain.config.targets.builder import Builder
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import ARRAY_TASKS, ColumnsConf
from rtrain.datasets.splitting.left_out import SPLITS, to_read
from rtrain.datasets.whole.conf import WholeConf
from rtrain.datasets.without_effect import check_task
from rtrain.errors import DatasetError, RtrainError

if TYPE_CHECKING:
    import pyarrow as pa

    from rtrain.datasets.arrays.load import Arrays
    from rtrain.datasets.texts.conf import TextConf

TEXT_TASKS = ("token-classification", "language-modeling")
TEXTS = ("auto", "classification", "regression", *TEXT_TASKS)
"""What can be learned from texts."""
OPTIONAL = ("weight", "group", "base_margin")
OF_BATCHES = ("iter_batches", "read_all")
"""Methods of a Ray Dataset, and of a reader of Arrow."""
ACCEPTED = "a pandas or polars frame, an Arrow table, a Ray Dataset, a torch dataset of (x, y), or {x: ..., y: ...}"


@dataclass(kw_only=True)
class FunctionConf:
    """Which function."""

    function: Annotated[str, Field(min_length=1)]
    """``module:function`` of the project that holds the config, or of a module in ``allow``."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the function, by name."""


@dataclass(kw_only=True)
class PythonConf(FunctionConf, ColumnsConf):
    """What a function returns: a frame, a table, a Ray Dataset, a torch dataset of pairs, or arrays x and y.

    It may also return a mapping from train, val and test to any of these. It is called once, on the driver, and all
    rows are held in memory.
    """

    label: str = "y"
    """Column to predict, of tables; of arrays, the name of the targets."""

    text: str | None = None
    """Column of texts, or of lists of words, to predict from; null: the other columns of a table, or arrays."""

    task: Annotated[str, *one_of(*ARRAY_TASKS, *TEXT_TASKS)] = "auto"
    """auto: by the label; arrays with a ``group`` are ranked. The last two are for texts; a language has no label."""


@dataclass(kw_only=True)
class WholePythonConf(FunctionConf, WholeConf):
    """What a function returns, with all its columns: a frame, a table, a Ray Dataset, or arrays by column.

    It is called once, on the driver, and all rows are held in memory.
    """


class Python(Source):
    """Rows from a function of yours: frames, tables, arrays, a Ray or torch dataset; in memory."""

    Conf = PythonConf
    WholeConf = WholePythonConf
    runs_code = True
    may_use_ray = True

    def load(self, conf: PythonConf) -> Dataset:
        """Call the function and take what it returns."""
        tables, arrays = (to_read(parts, conf.split) for parts in _by_split(conf, self.builder))
        fitting = ARRAY_TASKS if arrays or conf.text is None else TEXTS
        check_task(conf.task, fitting, f"the {_kind(arrays, conf)} of {conf.function}")
        if arrays:
            return _of_arrays(arrays, conf)
        if conf.text is not None:
            from rtrain.datasets.texts.load import load_text_tables

            return load_text_tables("python", tables, _text_conf(conf))
        from rtrain.datasets.tables.arrow import load_arrow

        return load_arrow("python", tables, conf, conf.function)

    def load_whole(self, conf: WholePythonConf) -> Dataset:
        """Call the function and take all columns of what it returns."""
        import numpy as np

        from rtrain.datasets.tables.frames import arrays_by_name
        from rtrain.datasets.whole.load import load_columns, load_table

        found = _call(conf, self.builder)
        if _is_by_split(found):
            names = ", ".join(map(str, found))
            message = f"{conf.function} returns rows by split, and each of datasets is one table: {names}."
            hint = "Return the rows of one split, chosen by an argument: 'dataset.arguments={split: train}'"
            raise DatasetError(message, hint)
        if isinstance(found, Mapping):
            return load_columns("python", arrays_by_name(found, conf.function), conf, conf.function)
        table = _table(found, conf)
        if table is not None:
            return load_table("python", table, conf, conf.function)
        pairs = _of_pairs(found, conf) if _is_listed(found) else None
        if pairs is None:
            raise _unknown(found, conf)
        return load_columns("python", {"x": pairs.x, "y": np.asarray(pairs.y)}, conf, conf.function)

    def open_rows(self, conf: PythonConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Call the function and take all rows that it returns; labels may be missing."""
        tables, arrays = _by_split(conf, self.builder)
        if arrays:
            from rtrain.datasets.arrays.predict_rows import open_array_rows

            return open_array_rows(list(arrays.values()), encoding)
        if conf.text is not None:
            from rtrain.datasets.texts.predict_rows import open_text_tables

            return open_text_tables(tables, _text_conf(conf), encoding)
        from rtrain.datasets.tables.predict_rows import open_arrow_rows

        return open_arrow_rows(tables, conf, encoding, conf.function)


def _kind(arrays: Mapping[str, Arrays], conf: PythonConf) -> str:
    return "arrays" if arrays else "table" if conf.text is None else "texts"


def _by_split(conf: PythonConf, builder: Builder) -> tuple[dict[str, pa.Table], dict[str, Arrays]]:
    """Return what the function returns for each split: tables or arrays, the other one empty."""
    from rtrain.datasets.arrays.load import Arrays

    found = _call(conf, builder)
    parts = _checked_splits(found, conf) if _is_by_split(found) else {"train": found}
    taken = {split: _taken(part, conf) for split, part in parts.items()}
    arrays = {split: part for split, part in taken.items() if isinstance(part, Arrays)}
    tables = {split: part for split, part in taken.items() if not isinstance(part, Arrays)}
    if tables and arrays:
        raise DatasetError(f"{conf.function}: some splits are tables and others are arrays.")
    return tables, arrays


def _call(conf: FunctionConf, builder: Builder) -> Any:
    """Return what the function returns, or say where in the user's code it failed."""
    from rtrain.config.targets.argument_types import parameters_of
    from rtrain.config.targets.arguments import check_names_known
    from rtrain.config.targets.importing import raised_at

    function = builder.locate(conf.function, "dataset.function")
    if not callable(function):
        raise DatasetError(f"dataset.function: {conf.function} is not a function.")
    parameters = parameters_of(function)
    if parameters is not None:
        check_names_known(parameters, list(conf.arguments), "dataset.arguments", conf.function)
    try:
        return function(**conf.arguments)
    except RtrainError:
        raise
    except SystemExit as error:
        message = f"dataset.function: {conf.function} ended the process: exit({error.code})"
        raise DatasetError(message, raised_at(error)) from error
    except Exception as error:
        message = f"dataset.function: {conf.function} failed: {type(error).__name__}: {error}"
        raise DatasetError(message, raised_at(error)) from error


def _is_by_split(found: Any) -> bool:
    """Return whether this holds the rows of splits, by whatever name, and not columns."""
    if not isinstance(found, Mapping) or not found or "x" in found:
        return False
    return ("train" in found and set(found) <= set(SPLITS)) or any(map(_holds_rows, found.values()))


def _holds_rows(found: Any) -> bool:
    """Return whether this can only be the rows of a split: a column is a list, an array or a series."""
    if isinstance(found, Mapping) or is_frame(found) or any(hasattr(found, one) for one in OF_BATCHES):
        return True
    return _is_listed(found) and not (isinstance(found, Sequence) or hasattr(found, "__array__"))


def _checked_splits(found: Mapping[Any, Any], conf: FunctionConf) -> Mapping[str, Any]:
    """Return the rows of splits, all of which rtrain knows."""
    from rtrain.datasets.files import SPLIT_NAMES

    unknown = [str(split) for split in found if split not in SPLITS]
    if unknown:
        meant = SPLIT_NAMES.get(unknown[0])
        hint = f"Call it '{meant}'." if meant else there_are(SPLITS)
        raise DatasetError(f"{conf.function} returns '{unknown[0]}', and there is no split '{unknown[0]}'.", hint)
    if "train" not in found:
        raise DatasetError(f"{conf.function} returns no split 'train'; it returns {', '.join(map(str, found))}.")
    return found


def _text_conf(conf: PythonConf) -> TextConf:
    from rtrain.datasets.tables.column_roles import refuse_table_keys
    from rtrain.datasets.texts.conf import TextConf
    from rtrain.datasets.without_effect import refuse_idle

    refuse_table_keys(conf, f"the texts of {conf.function}")
    refuse_idle(conf, ("normalize",), "texts are not numbers")
    label = None if conf.task == "language-modeling" else conf.label
    shares = {name: getattr(conf, name) for name in ("split", "seed", "sample", "limit")}
    return TextConf(path=conf.function, task=conf.task, text=str(conf.text), label=label, **shares)


def _of_arrays(parts: Mapping[str, Arrays], conf: PythonConf) -> Dataset:
    from rtrain.datasets.arrays.load import Names, feature_names, load_arrays
    from rtrain.datasets.splitting.by_column import refuse_keys
    from rtrain.datasets.tables.column_roles import refuse_table_keys
    from rtrain.datasets.without_effect import refuse_idle

    refuse_idle(conf, ("text",), f"{conf.function} returns arrays, which have no columns")
    refuse_keys(conf.split, f"the arrays of {conf.function}")
    refuse_table_keys(conf, f"the arrays of {conf.function}")
    for part in parts.values():
        if part.y is None:
            message = f"{conf.function} returns arrays without targets '{conf.label}'."
            raise DatasetError(message, "Set dataset.label, or return {x: ..., y: ...}.")
    shape = parts["train"].x.shape
    names = Names(source="python", label=conf.label, features=feature_names(shape[1]) if len(shape) == 2 else ())
    return load_arrays(parts, names, conf, conf.task)


def _taken(found: Any, conf: PythonConf) -> Arrays | pa.Table:
    """Return the rows of a split as arrays or as a table."""
    if isinstance(found, Mapping):
        return _of_mapping(found, conf)
    table = _table(found, conf)
    if table is not None:
        return table
    if _is_listed(found):
        return _of_pairs(found, conf)
    raise _unknown(found, conf)


def _is_listed(found: Any) -> bool:
    """Return whether this is a list of rows, or a dataset like torch's, and no column or array."""
    return hasattr(found, "__getitem__") and hasattr(found, "__len__") and not hasattr(found, "ndim")


def _unknown(found: Any, conf: FunctionConf) -> DatasetError:
    from rtrain.datasets.tables.frames import is_sparse

    if is_sparse(found):
        message = f"{conf.function} returns a sparse matrix ({type(found).__name__})."
        return DatasetError(message, "Return it dense, with the targets: {x: matrix.toarray(), y: ...}")
    return DatasetError(
        f"{conf.function} returns a {type(found).__name__}.", f"Return {ACCEPTED}; or one for each split."
    )


def _table(found: Any, conf: FunctionConf) -> pa.Table | None:
    """Return a frame or a Ray Dataset as a table; None for anything else."""
    import pyarrow as pa

    from rtrain.datasets.tables.frames import table_of_pandas, table_of_polars

    if isinstance(found, pa.Table):
        return found
    if isinstance(found, pa.RecordBatchReader):
        return found.read_all()
    library, drop = type(found).__module__.partition(".")[0], conf.drop if isinstance(conf, PythonConf) else ()
    if library == "pandas" and is_frame(found):
        return table_of_pandas(found, conf.function, drop)
    if library == "polars" and is_frame(found):
        return table_of_polars(found, conf.function, drop)
    if hasattr(found, "iter_batches"):
        return pa.concat_tables(found.iter_batches(batch_size=None, batch_format="pyarrow"))
    return None


def _of_mapping(found: Mapping[Any, Any], conf: PythonConf) -> Arrays | pa.Table:
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays
    from rtrain.datasets.tables.frames import arrays_by_name, table_of_arrays

    arrays = arrays_by_name(found, conf.function, conf.drop)
    if "x" in arrays and arrays["x"].ndim > 1:
        more = {name: arrays[name] for name in OPTIONAL if name in arrays}
        if "group" in more:
            more["group"] = np.unique(more["group"], return_inverse=True)[1]
        return Arrays(where=conf.function, x=arrays["x"], y=arrays.get(conf.label), more=more)
    return table_of_arrays(arrays, conf.function, conf.drop)


def _of_pairs(found: Any, conf: FunctionConf) -> Arrays:
    """Return the rows of a map-style dataset, such as torch's, whose items are pairs of input and target."""
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays

    rows = [found[index] for index in range(len(found))]
    if not rows or any(not isinstance(row, tuple | list) or len(row) != 2 for row in rows):
        message = f"{conf.function} returns a {type(found).__name__} whose items are not pairs (x, y)."
        raise DatasetError(message, f"Return {ACCEPTED}.")
    try:
        x, y = (np.stack([np.asarray(row[part]) for row in rows]) for part in (0, 1))
    except ValueError as error:
        raise DatasetError(f"{conf.function}: its rows differ in shape ({error}).") from error
    return Arrays(where=conf.function, x=x, y=y)
