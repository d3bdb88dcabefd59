"""A checkpoint in Python: its folder, and its model as a function of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo, objects
from rtrain.errors import ConfigError, PredictionError
from rtrain.prediction.opened_model import open_model
from rtrain.trainers.base import BASE
from rtrain.trainers.trained import Predictor

FOLLOWED = ("trainer.predictor", BASE, "scaling.use_gpu")
"""Keys that a checkpoint is loaded by."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose model is loaded."""

    path: Path
    """Its folder."""
    info: DatasetInfo
    """The dataset of training: its classes and features."""
    predictor: Predictor

    @property
    def model(self) -> Any:
        """The trained model as its framework has it, to export it or to look into it.

        A module of torch (a ``LightningModule``, a ``PreTrainedModel``) that is set to evaluate, an XGBoost or LightGBM
        ``Booster``, a fitted estimator of scikit-learn, a Keras model; of JAX a function of rows. It takes what comes
        after the steps that ``predict`` adds: standardized rows; and gives what comes before them: logits.

        Raises:
            PredictionError: It was loaded by code that has no such model: a ``trainer.predictor``, or a plugin.
        """
        if not hasattr(self.predictor, "model"):
            raise PredictionError(
                f"{type(self.predictor).__name__} predicts with this checkpoint and has no attribute 'model'.",
                "Use predict(x), or what its own attributes hold: checkpoint.predictor.",
            )
        return self.predictor.model

    def predict(self, x: Any) -> Any:
        """Return a prediction for each row.

        Args:
            x: (rows, ...) prepared as the dataset of training gives them, as an array or nested lists; numbers of
                another type become ``info.dtype``. Of a train loop of your own also a dict of arrays by column, as its
                ``trainer.predictor`` takes them, or a table of pandas, polars or Arrow.

        Returns:
            (rows, classes) probabilities, or (rows,) values. Of a loop, what its predictor returns, as arrays.

        Raises:
            PredictionError: It is a table, and the model takes rows that are prepared.
        """
        columns, is_declared = _columns_of(x), not hasattr(self.predictor, "predict_columns")
        if columns is not None and is_declared:
            raise PredictionError(
                "this model takes an array of prepared rows, not a table.",
                "rtrain.predict(RUN, 'out.parquet', ['dataset.path=FILE']) prepares them as in training.",
            )
        rows: Any = x if columns is None else columns
        return self.predictor.predict(_as_array(rows, self.info) if is_declared else rows)


def _as_array(x: Any, info: DatasetInfo) -> Any:
    """Return rows of numbers as an array of the type that a model was trained with; texts as they are, in an array."""
    if info.dtype == "object" or info.original_sizes:
        return objects(x) if isinstance(x, list | tuple) else x
    rows = np.asarray(x)
    is_number = np.dtype(info.dtype).kind == "f" and rows.dtype.kind in "biuf"
    return rows.astype(info.dtype, copy=False) if is_number else rows


def _columns_of(x: Any) -> dict[str, np.ndarray] | None:
    """Return the columns of a table by name; None for anything else, and for columns without names."""
    names = getattr(x, "column_names", None) or getattr(x, "columns", None)
    if names is None or isinstance(x, Mapping) or not all(isinstance(one, str) for one in names):
        return None
    return {name: np.asarray(x[name]) for name in names}


def loaded(place: Path, words: Sequence[str], *, checkpoint: str, trust: bool) -> Checkpoint:
    """Return a checkpoint with its model.

    Args:
        place: A run directory, or the folder of a checkpoint.
        words: Overrides of keys that a checkpoint is loaded by.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        trust: Run the code that the checkpoint names, even if another account wrote it.

    Raises:
        CheckpointError: There is no such checkpoint, or nothing says how to predict with it.
        ConfigError: An override is wrong, or has no effect.
    """
    opened = open_model(place, words, checkpoint, verb="predict", trust=trust)
    for key, word in opened.words.items():
        if key not in FOLLOWED:
            raise ConfigError(f"{word} has no effect: predict(x) gets its rows as an argument.", "Leave it out.")
    model = opened.model
    return Checkpoint(model.trained.folder, model.trained.info, model.load())
