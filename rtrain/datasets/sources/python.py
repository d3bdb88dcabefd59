"""Rows from a function of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.schema import one_of
from rtrain.datasets.arrays import TASKS, Arrays, Names, feature_names, load_arrays
from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import ColumnsConf
from rtrain.errors import DatasetError, RtrainError

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_TASKS = ("token-classification", "language-modeling")
OPTIONAL = ("weight", "group", "base_margin")
KINDS = "a pandas or polars frame, an Arrow table, a Ray Dataset, a torch dataset of (x, y), or {x: ..., y: ...}"


@dataclass(kw_only=True)
class PythonConf(ColumnsConf):
    """What a function returns: a frame, a table, a Ray Dataset, a torch dataset of pairs, or arrays x and y.

    It may also return a mapping from train, val and test to any of these. It is called once, on the driver, and all
    rows are held in memory.
    """

    function: Annotated[str, Field(min_length=1)]
    """``module:function`` of the project that holds the config, or of a module in ``allow``."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the function, by name."""

    label: str = "y"
    """Column to predict, of tables; of arrays, the name of the targets."""

    text: str | None = None
    """Column of texts, or of lists of words, to predict from; null: the other columns of a table, or arrays."""

    task: Annotated[str, *one_of(*TASKS, *TEXT_TASKS)] = "auto"
    """auto: by the label; arrays with a ``group`` are ranked. The last two are for texts; a language has no label."""


class Python(Source):
    """Rows from a function of yours: frames, tables, arrays, a Ray or torch dataset; in memory."""

    Conf = PythonConf
    may_use_ray = True

    def load(self, conf: PythonConf) -> Dataset:
        """Call the function and take what it returns."""
        found = _call(conf, self.allow)
        parts = found if _is_by_split(found) else {"train": found}
        taken = {split: _taken(part, conf) for split, part in parts.items()}
        tables = {split: part for split, part in taken.items() if not isinstance(part, Arrays)}
        if not tables:
            return _of_arrays({split: part for split, part in taken.items() if isinstance(part, Arrays)}, conf)
        if len(tables) < len(taken):
            raise DatasetError(f"{conf.function}: some splits are tables and others are arrays.")
        if conf.text is not None:
            return _of_texts(tables, conf)
        from rtrain.datasets.arrow import load_arrow

        return load_arrow("python", tables, conf, conf.function)


def _call(conf: PythonConf, allow: Any) -> Any:
    """Return what the function returns, or say where in the user's code it failed."""
    import traceback

    from rtrain.config.targets import locate

    function = locate(conf.function, "dataset.function", allow)
    if not callable(function):
        raise DatasetError(f"dataset.function: {conf.function} is no function.")
    try:
        return function(**conf.arguments)
    except RtrainError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"dataset.function: {conf.function} failed: {type(error).__name__}: {error}"
        raise DatasetError(message, f"  --> {last.filename}:{last.lineno}") from error


def _is_by_split(found: Any) -> bool:
    return isinstance(found, Mapping) and "train" in found and set(found) <= {"train", "val", "test"}


def _of_texts(tables: Mapping[str, pa.Table], conf: PythonConf) -> Dataset:
    from rtrain.datasets.preprocessing import refuse_steps
    from rtrain.datasets.sources.text import TextConf
    from rtrain.datasets.text_source import load_text_tables

    refuse_steps(conf.preprocessors, f"the texts of {conf.function}")

    label = None if conf.task == "language-modeling" else conf.label
    shares = {name: getattr(conf, name) for name in ("split", "seed", "sample", "limit")}
    texts = TextConf(path=conf.function, task=conf.task, text=str(conf.text), label=label, **shares)
    return load_text_tables("python", tables, texts)


def _of_arrays(parts: Mapping[str, Arrays], conf: PythonConf) -> Dataset:
    from rtrain.datasets.preprocessing import refuse_steps
    from rtrain.datasets.split_keys import refuse_keys

    refuse_keys(conf.split, f"the arrays of {conf.function}")
    refuse_steps(conf.preprocessors, f"the arrays of {conf.function}")
    shape = parts["train"].x.shape
    names = Names(source="python", label=conf.label, features=feature_names(shape[1]) if len(shape) == 2 else ())
    return load_arrays(parts, names, conf, conf.task)


def _taken(found: Any, conf: PythonConf) -> Arrays | pa.Table:
    """Return the rows of a split as arrays or as a table."""
    import pyarrow as pa

    if isinstance(found, Mapping):
        return _of_mapping(found, conf)
    if isinstance(found, pa.Table):
        return found
    if isinstance(found, pa.RecordBatchReader):
        return found.read_all()
    library = type(found).__module__.partition(".")[0]
    if library == "pandas":
        return pa.Table.from_pandas(found, preserve_index=False)
    if library == "polars":
        return getattr(found, "collect", lambda: found)().to_arrow()
    if hasattr(found, "iter_batches"):
        return pa.concat_tables(found.iter_batches(batch_size=None, batch_format="pyarrow"))
    if hasattr(found, "__getitem__") and hasattr(found, "__len__"):
        return _of_pairs(found, conf)
    raise DatasetError(f"{conf.function} returns a {type(found).__name__}.", f"Return {KINDS}; or one for each split.")


def _of_mapping(found: Mapping[Any, Any], conf: PythonConf) -> Arrays | pa.Table:
    import numpy as np
    import pyarrow as pa

    arrays = {str(name): np.asarray(values) for name, values in found.items()}
    if "x" in arrays and arrays["x"].ndim > 1:
        if conf.label not in arrays:
            there = ", ".join(arrays)
            message = f"{conf.function} returns arrays without targets '{conf.label}'; there are: {there}."
            raise DatasetError(message, "Set dataset.label, or return {x: ..., y: ...}.")
        more = {name: arrays[name] for name in OPTIONAL if name in arrays}
        return Arrays(where=conf.function, x=arrays["x"], y=arrays[conf.label], more=more)
    try:
        return pa.table({name: pa.array(values) for name, values in arrays.items()})
    except (pa.ArrowException, TypeError) as error:
        raise DatasetError(f"{conf.function}: its arrays make no table: {error}", f"Return {KINDS}.") from error


def _of_pairs(found: Any, conf: PythonConf) -> Arrays:
    """Return the rows of a map-style dataset, such as torch's, whose items are pairs of input and target."""
    import numpy as np

    rows = [found[index] for index in range(len(found))]
    if not rows or any(not isinstance(row, tuple | list) or len(row) != 2 for row in rows):
        message = f"{conf.function} returns a {type(found).__name__} whose items are not pairs (x, y)."
        raise DatasetError(message, f"Return {KINDS}.")
    try:
        x, y = (np.stack([np.asarray(row[part]) for row in rows]) for part in (0, 1))
    except ValueError as error:
        raise DatasetError(f"{conf.function}: its rows differ in shape ({error}).") from error
    return Arrays(where=conf.function, x=x, y=y)
