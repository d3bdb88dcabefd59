"""Predict with the checkpoint of an xgboost run, from its files alone."""

from __future__ import annotations

import json

import numpy as np
import xgboost

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, first_line
from rtrain.trainers.loops.boosting.predictor import TreesPredictor
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.boosting.rounds import flat, usable_names
from rtrain.trainers.loops.ranking_metrics import Ranking, without_splits
from rtrain.trainers.trained import LoadedCheckpoint
from rtrain.trainers.xgboost.config import Conf
from rtrain.trainers.xgboost.inputs import feature_types
from rtrain.trainers.xgboost.metrics import gives_margins
from rtrain.trainers.xgboost.model_file import MODEL, best_rounds, read_trees


class Predictor(TreesPredictor):
    """Boosted trees of XGBoost; see ``TreesPredictor``."""

    def __init__(
        self, booster: xgboost.Booster, info: DatasetInfo, *, margins: bool, ranking: Ranking | None = None
    ) -> None:
        super().__init__(info, margins=margins, ranking=ranking)
        self._booster, self._rounds = booster, (0, best_rounds(booster))

    @property
    def model(self) -> xgboost.Booster:
        """The rounds that it predicts with, without those that early stopping left behind the best one."""
        return self._booster[: self._rounds[1]] if self._rounds[1] else self._booster

    def outputs(self, x: np.ndarray, base_margin: np.ndarray | None) -> np.ndarray:
        """Return what XGBoost predicts."""
        matrix = xgboost.DMatrix(
            flat(x),
            base_margin=base_margin,
            feature_names=usable_names(self.info),
            feature_types=feature_types(self.info),
            enable_categorical=True,
        )
        found = self._booster.predict(matrix, iteration_range=self._rounds, output_margin=self._margins)
        return np.asarray(found)


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Load the trees of a checkpoint; the file is data and executes nothing.

    Raises:
        CheckpointError: The file is missing or damaged, or XGBoost did not write it.
    """
    conf: Conf = trained.conf
    try:
        booster = read_trees(trained.folder, trained.info, trusted=trained.own_files)
        booster.set_param({"device": device})
        progress = RoundProgress.load(trained.folder)
    except (OSError, xgboost.core.XGBoostError) as error:
        raise CheckpointError(f"{trained.folder / MODEL} can't be read: {first_line(error)}") from error
    linear = str(conf.params.get("ndcg_exp_gain", True)).lower() in ("false", "0")
    ranking = Ranking(without_splits(progress.metrics), linear=linear)
    predictor = Predictor(booster, trained.info, margins=gives_margins(conf), ranking=ranking)
    objective = json.loads(booster.save_config())["learner"]["objective"]
    if conf.objective_function is None and objective["name"] == "reg:quantileerror":
        alphas = json.loads(objective["quantile_loss_param"]["quantile_alpha"])
        predictor.quantiles = tuple(alphas if isinstance(alphas, list) else [alphas])
    return predictor
