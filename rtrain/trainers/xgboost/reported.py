"""Models that ``ray.train.xgboost.RayTrainReportCallback`` reports from a train loop."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import xgboost

from rtrain.trainers.loops.custom.predictors.reported import Columns, ReportedModel, matrix_of


def load_model(model: ReportedModel) -> Callable[[Columns], np.ndarray]:
    """Return what predicts with the trees of a file, all of them."""
    booster = xgboost.Booster(model_file=model.file)
    booster.set_param({"device": model.device})
    names, types, num_features = booster.feature_names, booster.feature_types, booster.num_features()
    gives_classes = json.loads(booster.save_config())["learner"]["objective"]["name"] == "multi:softmax"

    def predict(columns: Columns) -> np.ndarray:
        x = matrix_of(columns, names, num_features)
        rows = xgboost.DMatrix(x, feature_names=names, feature_types=types, enable_categorical=True)
        found = np.asarray(booster.predict(rows))
        return found.astype(np.int64) if gives_classes else found

    return predict
