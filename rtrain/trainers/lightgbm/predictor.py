"""Predict with the checkpoint of a lightgbm run, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lightgbm
import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, first_line
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.model_file import MODEL, read_trees
from rtrain.trainers.loops.boosting.margins import probabilities_of_margins
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.boosting.rounds import flat
from rtrain.trainers.loops.ranking_metrics import Ranking, without_splits
from rtrain.trainers.trained import LoadedCheckpoint, check_shape

EXPONENTIAL = ("poisson", "gamma", "tweedie")
LOGISTIC = ("binary", "multiclassova", "cross_entropy")


class Predictor:
    """Boosted trees that take rows as the dataset gives them.

    Args:
        booster: The trees.
        info: The dataset that they were grown on.
        num_rounds: Rounds to use; 0 for all.
        margins: The objective was the user's own, so that the trees give sums and not probabilities.
        ranking: What the run measured, if it is one.
    """

    least_probability = 1e-15

    def __init__(
        self,
        booster: lightgbm.Booster,
        info: DatasetInfo,
        num_rounds: int,
        *,
        margins: bool,
        ranking: Ranking | None = None,
    ) -> None:
        self.ranking = ranking or Ranking()
        self.info, self._booster, self._margins = info, booster, margins
        self._num_rounds = num_rounds or -1

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return a probability for each class, or the value of a regression or ranking.

        Args:
            x: (rows, *input_shape); NaN is a missing value.

        Returns:
            float32: (rows, num_classes), or (rows,).

        Raises:
            ValueError: The rows have another shape than those of training.
        """
        return self._shaped(self._trees(x, sums=False))

    def predict_from(self, x: np.ndarray, base_margin: np.ndarray) -> np.ndarray:
        """Return what ``predict`` does, for rows that bring scores to start from: (rows,) or (rows, classes).

        LightGBM itself leaves it to its caller to add them.
        """
        return self._shaped(self._of_sums(self._trees(x, sums=True) + base_margin))

    def _trees(self, x: np.ndarray, sums: bool) -> np.ndarray:
        check_shape(x, self.info)
        if len(x) == 0:
            num_classes = self.info.num_classes or 1
            return np.zeros((0, num_classes) if num_classes > 2 else (0,))
        return np.asarray(self._booster.predict(flat(x), num_iteration=self._num_rounds, raw_score=sums))

    def _of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Return what LightGBM makes of the sums of trees, by the objective."""
        objective = self._booster.params.get("objective")
        if objective == "multiclass":
            return probabilities_of_margins(sums)
        if objective == "cross_entropy_lambda":
            return np.asarray(np.log1p(np.exp(sums)))
        if objective == "regression" and self._booster.params.get("reg_sqrt"):
            return np.asarray(np.sign(sums) * np.square(sums))
        if objective in EXPONENTIAL:
            return np.asarray(np.exp(sums))
        if objective in LOGISTIC:
            steepness = 1.0 if objective == "cross_entropy" else float(self._booster.params.get("sigmoid", 1))
            return np.asarray(1 / (1 + np.exp(-steepness * sums)))
        return sums

    def _shaped(self, found: np.ndarray) -> np.ndarray:
        if self.info.task != "classification":
            return found.astype(np.float32)
        return self._probabilities(found).astype(np.float32)

    def _probabilities(self, found: np.ndarray) -> np.ndarray:
        if self._margins:
            return probabilities_of_margins(found)
        return found if found.ndim == 2 else np.stack([1 - found, found], axis=1)


class QuantilePredictor(Predictor):
    """Boosted trees that predict a quantile."""

    def __init__(
        self, booster: lightgbm.Booster, info: DatasetInfo, num_rounds: int, quantiles: tuple[float, ...]
    ) -> None:
        super().__init__(booster, info, num_rounds, margins=False)
        self.quantiles = quantiles


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Load the trees of a checkpoint; the file is text and executes nothing.

    Raises:
        CheckpointError: It is not there or damaged, or none that LightGBM would write.
    """
    conf: Conf = trained.conf
    try:
        booster = read_trees(trained.folder, trusted=trained.own_files)
        progress = RoundProgress.load(trained.folder)
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        raise CheckpointError(f"{trained.folder / MODEL} can't be read: {first_line(error)}") from error
    num_rounds = progress.rounds_to_predict(stops_early=conf.early_stopping is not None)
    if booster.params.get("objective") == "quantile":
        alpha = float(booster.params["alpha"])
        return QuantilePredictor(booster, trained.info, num_rounds, (alpha,))
    ranking = Ranking(without_splits(progress.metrics), _gains(conf.params))
    margins = conf.objective_function is not None
    return Predictor(booster, trained.info, num_rounds, margins=margins, ranking=ranking)


def _gains(params: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return LightGBM's ``label_gain``, a list or a text with commas; None where it is not given."""
    given = params.get("label_gain")
    if given is None:
        return None
    return tuple(map(float, given.split(",") if isinstance(given, str) else given))
