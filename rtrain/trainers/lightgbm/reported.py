"""Models that ``ray.train.lightgbm.RayTrainReportCallback`` reports from a train loop."""

from __future__ import annotations

from collections.abc import Callable

import lightgbm
import numpy as np

from rtrain.trainers.loops.custom.predictors.reported import Columns, ReportedModel, matrix_of


def load_model(model: ReportedModel) -> Callable[[Columns], np.ndarray]:
    """Return what predicts with the trees of a file."""
    booster = lightgbm.Booster(model_file=model.file)
    names, num_features = booster.feature_name(), booster.num_feature()
    return lambda columns: np.asarray(booster.predict(matrix_of(columns, names, num_features)))
