"""The predictor of a loop's checkpoint: the function that ``trainer.predictor`` makes, or a model known by its file."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, ConfigError, PredictionError
from rtrain.trainers.loops.custom.predictors.outputs import as_columns, as_metrics, kind_of, predictions_of
from rtrain.trainers.loops.custom.predictors.reported import find_model
from rtrain.trainers.loops.custom.world import Frameworks
from rtrain.trainers.trained import TRUST, LoadedCheckpoint, Predictions
from rtrain.trainers.user_code import predicting

log = logging.getLogger(__name__)
KEY = "trainer.predictor"
BATCH_ROWS = 1024
"""Rows that a function of the user's gets at most, as from Ray Data's ``map_batches``."""


@dataclass(frozen=True)
class LoopPredictor:
    """A function of named columns, held to what the dataset needs; a ``ColumnsPredictor``."""

    info: DatasetInfo
    name: str
    """Of the function, for messages."""
    function: Callable[[Mapping[str, np.ndarray]], Any]
    metrics: Callable[[Mapping[str, np.ndarray]], Any] | None = None
    batch_rows: int | None = None
    """Rows that it gets at most; None: as many as there are."""

    def predict(self, x: Any) -> Any:
        """Return what the function returns, as one array, or as an array for each of the columns that it returns.

        Args:
            x: Arrays, (rows, ...), by column; or one array for the column ``x``. Of all features of a table by their
                names, ``x`` is made.
        """
        columns = self._with_matrix(x) if isinstance(x, Mapping) else {"x": x}
        with predicting(self.name):
            parts = [as_columns(self.function(batch), rows, self.name) for rows, batch in self._batches(columns)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return joined["prediction"] if list(joined) == ["prediction"] else joined

    def predict_columns(self, columns: Mapping[str, np.ndarray]) -> Predictions:
        """Return predictions as the task of the dataset needs them.

        Raises:
            PredictionError: The function fails, or returns something else.
        """
        found = self.predict(columns)
        return predictions_of(found if isinstance(found, dict) else {"prediction": found}, self.info, self.name)

    def measure_columns(self, columns: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        """Return the means over rows of what the predictor's own ``metrics`` returns."""
        if self.metrics is None:
            return {}
        sums: dict[str, float] = {}
        with predicting(f"{self.name}.metrics"):
            for rows, batch in self._batches(columns):
                for name, value in as_metrics(self.metrics(batch), f"{self.name}.metrics").items():
                    sums[name] = sums.get(name, 0.0) + value * rows
        num_rows = _num_rows(columns)
        return {name: total / num_rows for name, total in sums.items()}

    def _with_matrix(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        names = self.info.feature_names
        if "x" in columns or not names or not set(names) <= set(columns):
            return columns
        return {**columns, "x": np.column_stack([columns[name] for name in names]).astype(self.info.dtype)}

    def _batches(self, columns: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Yield copies of some rows at a time, which the user's code may change."""
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        num_rows = _num_rows(arrays)
        size = self.batch_rows or max(num_rows, 1)
        for start in range(0, max(num_rows, 1), size):
            yield (
                min(size, num_rows - start),
                {name: np.array(values[start : start + size]) for name, values in arrays.items()},
            )


def load_predictor(trained: LoadedCheckpoint, frameworks: Frameworks, device: str) -> LoopPredictor:
    """Return the predictor of a loop's checkpoint.

    Args:
        trained: The checkpoint; its conf may name what makes the predictor.
        frameworks: Returns the plugins whose models are looked for.
        device: Where models predict that are known by their files.

    Raises:
        CheckpointError: Another account wrote it, or nothing says how to predict.
        PredictionError: The user's function fails.
    """
    if not trained.is_own:
        raise CheckpointError(
            f"{trained.folder} was written by a train loop of another account: its files could run any code.",
            TRUST,
        )
    path = trained.conf.predictor
    named = None if path is None else trained.builder.locate_function(path, KEY)
    if named is None or hasattr(named, "load_from_checkpoint"):
        model = find_model(trained, frameworks(), device, named)
        log.warning(
            "%s predicts from rows as in the loop's shards; if the loop preprocesses them, set a predictor that does "
            "the same: %s",
            model.name,
            f"{KEY}=module:function",
        )
        return LoopPredictor(trained.info, model.name, model.function)
    with predicting(f"{KEY}={path}"):
        made = named(*_arguments(named, trained))
        function = made if callable(made) else getattr(made, "predict", None)
        if not callable(function):
            raise PredictionError(
                f"{KEY}={path} returned {kind_of(made)}, which is not a function of a batch.",
                "Return a function that takes a dict of arrays by column, or an object with __call__ or predict.",
            )
    metrics = getattr(made, "metrics", None)
    return LoopPredictor(trained.info, path, function, metrics if callable(metrics) else None, BATCH_ROWS)


def check_predictor(path: str, builder: Builder) -> None:
    """Find out before training whether the function that makes predictors is there, and can be called.

    Raises:
        ConfigError: It is not, or can't.
    """
    num_arguments(builder.locate_function(path, KEY), path)


def num_arguments(function: Any, path: str) -> int:
    """Return whether a function takes the folder alone, or the loop's config as well.

    Raises:
        ConfigError: It takes neither.
    """
    if hasattr(function, "load_from_checkpoint"):
        return 1
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return 1
    for count in (2, 1):
        needed = [one for one in signature.parameters.values() if one.default is one.empty]
        with_folder_alone = count == 1 or len([one for one in needed if one.kind not in _SEVERAL]) == 2
        if with_folder_alone and _takes(signature, count):
            return count
    raise ConfigError(
        f"{KEY}: {path}{signature} can't be called with a folder.",
        "It gets the folder of a checkpoint as a pathlib.Path, and train_loop_config if it has a second argument.",
    )


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _arguments(function: Any, trained: LoadedCheckpoint) -> tuple[Any, ...]:
    given = (trained.folder, dict(trained.conf.train_loop_config))
    return given[: num_arguments(function, trained.conf.predictor)]


def _num_rows(columns: Mapping[str, Any]) -> int:
    return len(next(iter(columns.values()), ()))
