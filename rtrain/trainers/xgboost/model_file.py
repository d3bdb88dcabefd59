"""The file of boosted trees: another account's is looked at before XGBoost reads it."""

from __future__ import annotations

from math import prod
from pathlib import Path

import xgboost

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.trained import BROKEN
from rtrain.trainers.xgboost.trees import check_model
from rtrain.trainers.xgboost.ubjson import read_ubjson

MODEL = "model.ubj"


def read_trees(folder: Path, info: DatasetInfo, *, trusted: bool) -> xgboost.Booster:
    """Return the trees of a checkpoint.

    Args:
        folder: The checkpoint.
        info: The dataset that they were grown on.
        trusted: Whether this account wrote it, or the user trusts who did.

    Raises:
        CheckpointError: Another account's file is none that XGBoost would write: over such ones it may end the process.
    """
    if trusted:
        return xgboost.Booster(model_file=folder / MODEL)
    content = (folder / MODEL).read_bytes()
    try:
        check_model(read_ubjson(content), prod(info.input_shape))
    except ValueError as error:
        raise CheckpointError(
            f"{folder / MODEL} was written by another account and is not passed to XGBoost: {error}.", BROKEN
        ) from error
    return xgboost.Booster(model_file=bytearray(content))


def best_rounds(booster: xgboost.Booster) -> int:
    """Return the rounds that a prediction should use; 0 for all of them.

    Raises:
        CheckpointError: There are fewer. XGBoost itself reads beyond its trees then, which ends the process.
    """
    best = booster.attr("best_iteration")
    if best is None:
        return 0
    there = booster.num_boosted_rounds()
    num_rounds = int(best) + 1 if best.isdecimal() and len(best) < 10 else 0
    if not 0 < num_rounds <= there:
        raise CheckpointError(f"{MODEL} has {there} rounds, but its best one is at {best[:20]!r}.")
    return num_rounds
