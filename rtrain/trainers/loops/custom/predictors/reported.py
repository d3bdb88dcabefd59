"""Models that Ray's callbacks report from a loop: known by their files, loaded by the framework's own plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, PredictionError
from rtrain.plugins import check_installed
from rtrain.runs.checkpoints import RECORD_NAME
from rtrain.runs.events import events_file
from rtrain.text.enumeration import few
from rtrain.trainers.base import TrainerPlugin
from rtrain.trainers.trained import FILE_NAME, LoadedCheckpoint

MOST_FILES = 8
"""That an error names."""
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ReportedModel:
    """A file of a loop's checkpoint by which a framework knows its model."""

    file: Path
    info: DatasetInfo
    device: str
    """``cpu`` or ``cuda``."""
    named: Any
    """The class of the model, where the user names it; its file doesn't always."""
    import_loop: Callable[[], object]
    """Imports the module of the loop, which may define parts of the model."""


@dataclass(frozen=True)
class FoundModel:
    """What predicts with such a model."""

    name: str
    """For messages."""
    function: Callable[[Columns], Any]


def find_model(
    trained: LoadedCheckpoint, frameworks: Iterable[tuple[str, TrainerPlugin]], device: str, named: Any = None
) -> FoundModel:
    """Return what predicts with the model in a checkpoint.

    Args:
        trained: The checkpoint.
        frameworks: The plugins by name, that of the loop's trainer first.
        device: Where to predict.
        named: The class of the model, where the user names it.

    Raises:
        CheckpointError: There is no such model, or there are several; says how to name what predicts.
    """
    for name, plugin in frameworks:
        files = next(filter(None, (sorted(trained.folder.glob(pattern)) for pattern in plugin.reported)), [])
        if len(files) > 1:
            raise unknown_model(trained, f"several files could be the model: {', '.join(one.name for one in files)}")
        for file in files:
            model = ReportedModel(
                file=file,
                info=trained.info,
                device=device,
                named=named,
                import_loop=partial(trained.builder.locate, trained.conf.train_loop, "trainer.train_loop"),
            )
            check_installed(f"{file.name} of {name}", plugin.requires, None)
            function = plugin.part("reported").load_model(model)
            return FoundModel(f"{file.relative_to(trained.folder)} ({name})", function)
    raise unknown_model(trained, "none of its files has the name of a known model")


def unknown_model(trained: LoadedCheckpoint, why: str) -> CheckpointError:
    """Return the error of a checkpoint that nothing can predict with, unless the user says how."""
    own = {RECORD_NAME, FILE_NAME, events_file(trained.folder).name}
    names = sorted(
        one.relative_to(trained.folder).as_posix()
        for one in trained.folder.rglob("*")
        if one.is_file() and one.name not in own
    )
    return CheckpointError(
        f"{trained.folder} was reported by {trained.conf.train_loop}, a custom train loop, and {why}. It contains: "
        f"{few(names, MOST_FILES) or 'nothing'}.",
        "Set a function that returns a predictor: trainer.predictor=my_module:load\n"
        "  def load(folder):                     # a pathlib.Path\n"
        "      model = ...                       # from the files of the folder\n"
        "      return lambda batch: model(batch['x'])   # arrays by column; one prediction for each row",
    )


def matrix_of(columns: Columns, names: Sequence[str] | None, num_features: int) -> np.ndarray:
    """Return (rows, features) as a model takes it: the columns that it names, else ``x``.

    Raises:
        PredictionError: There are other features.
    """
    if names and set(names) <= set(columns):
        return np.column_stack([columns[name] for name in names])
    if "x" not in columns:
        lacking = [name for name in names or () if name not in columns]
        what = f"the data lacks the columns {', '.join(lacking[:5])}" if lacking else "the model names no columns"
        raise PredictionError(f"{what}; the data has {', '.join(list(columns)[:10])}.", NAME_IT)
    x = columns["x"].reshape(len(columns["x"]), -1)
    if x.shape[1] != num_features:
        raise PredictionError(f"the model takes {num_features} features, but the rows have {x.shape[1]}.", NAME_IT)
    return x


def array_of(columns: Columns) -> np.ndarray:
    """Return the one array that a model takes.

    Raises:
        PredictionError: The rows have columns, as a table has.
    """
    if "x" in columns:
        return columns["x"]
    names = list(columns)[:MOST_FILES]
    stacked = ", ".join(f"batch['{name}']" for name in names[:2])
    raise PredictionError(
        f"the model takes one array, but the rows have the columns {', '.join(names)}.",
        "Set a function that builds the array: trainer.predictor=my_module:load\n"
        "  def load(folder):\n"
        "      model = ...                       # from the files of the folder\n"
        f"      return lambda batch: model(np.column_stack([{stacked}, ...]))",
    )


NAME_IT = "If the loop preprocesses its rows, do the same in: trainer.predictor=my_module:load"
