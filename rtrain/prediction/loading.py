"""A checkpoint in Python: its folder, and its model as a function of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, PredictionError
from rtrain.prediction.given_rows import as_rows, columns_of
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
    takes_missing: bool = True
    """Whether NaN in its rows is a missing value; else it is refused, as ``rtrain predict`` does."""

    def __hash__(self) -> int:
        return hash(self.path)

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
            x: (rows, ...) prepared as the dataset of training gives them, but not standardized: this function does it.
                An array or nested lists; numbers of another type become ``info.dtype``. Of a train loop of your own
                also a dict of arrays by column, as its ``trainer.predictor`` takes them, or a table of pandas, polars
                or Arrow.

        Returns:
            (rows, classes) probabilities, or (rows,) values. Of a loop, what its predictor returns, as arrays.

        Raises:
            PredictionError: It is a table, one row alone or texts, and the model takes rows that are prepared; or it
                has NaN, and the model takes no missing values.
        """
        if not hasattr(self.predictor, "predict_columns"):
            return self.predictor.predict(as_rows(x, self.info, takes_missing=self.takes_missing))
        columns: Any = columns_of(x)
        return self.predictor.predict(x if columns is None else columns)


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
    return Checkpoint(model.trained.folder, model.trained.info, model.load(), model.takes_missing)
