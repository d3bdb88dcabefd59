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
from rtrain.trainers.loops.boosting.predictor import TreesPredictor
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.boosting.rounds import flat
from rtrain.trainers.loops.ranking_metrics import Ranking, without_splits
from rtrain.trainers.trained import LoadedCheckpoint

EXPONENTIAL = ("poisson", "gamma", "tweedie")
LOGISTIC = ("binary", "multiclassova", "cross_entropy")


class Predictor(TreesPredictor):
    """Boosted trees of LightGBM; see ``TreesPredictor``. It uses ``num_rounds`` of their rounds; 0: all."""

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
        super().__init__(info, margins=margins, ranking=ranking)
        self._booster, self._num_rounds = booster, num_rounds or -1

    @property
    def model(self) -> lightgbm.Booster:
        """The booster, whose ``best_iteration`` tells its methods the rounds to use."""
        if self._num_rounds > 0:
            self._booster.best_iteration = self._num_rounds
        return self._booster

    def outputs(self, x: np.ndarray, base_margin: np.ndarray | None) -> np.ndarray:
        """Return what LightGBM predicts; it leaves it to its caller to add margins to the sums of trees."""
        if len(x) == 0:
            num_classes = self.info.num_classes or 1
            return np.zeros((0, num_classes) if num_classes > 2 else (0,))
        rounds = self._num_rounds
        if base_margin is None:
            return np.asarray(self._booster.predict(flat(x), num_iteration=rounds))
        sums = np.asarray(self._booster.predict(flat(x), num_iteration=rounds, raw_score=True))
        return self._of_sums(sums + base_margin)

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


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Load the trees of a checkpoint; the file is text and executes nothing.

    Raises:
        CheckpointError: The file is missing or damaged, or LightGBM did not write it.
    """
    conf: Conf = trained.conf
    try:
        booster = read_trees(trained.folder, trusted=trained.own_files)
        progress = RoundProgress.load(trained.folder)
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        raise CheckpointError(f"{trained.folder / MODEL} can't be read: {first_line(error)}") from error
    num_rounds = progress.rounds_to_predict(stops_early=conf.early_stopping is not None)
    ranking = Ranking(without_splits(progress.metrics), _gains(conf.params))
    margins = conf.objective_function is not None
    predictor = Predictor(booster, trained.info, num_rounds, margins=margins, ranking=ranking)
    if booster.params.get("objective") == "quantile":
        predictor.quantiles = (float(booster.params["alpha"]),)
    return predictor


def _gains(params: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return LightGBM's ``label_gain``, a list or a text with commas; None where it is not given."""
    given = params.get("label_gain")
    if given is None:
        return None
    return tuple(map(float, given.split(",") if isinstance(given, str) else given))
