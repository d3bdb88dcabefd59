"""Boost trees on each worker; XGBoost's collectives make the same trees everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from xgboost import collective

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.checkpoint_errors import reading
from rtrain.trainers.loops.boosting.init_model import InitialModel
from rtrain.trainers.loops.boosting.rounds import Rounds, eval_splits, functions, named_importance
from rtrain.trainers.trained import wrote_files
from rtrain.trainers.worker import Worker
from rtrain.trainers.xgboost.callbacks import build_own
from rtrain.trainers.xgboost.config import Conf
from rtrain.trainers.xgboost.inputs import make_matrix
from rtrain.trainers.xgboost.metrics import MODES, Metrics, OfMargins, deciding, gives_margins
from rtrain.trainers.xgboost.model_file import MODEL, best_rounds, read_trees
from rtrain.trainers.xgboost.params import device_of, plain_errors, worker_params
from rtrain.trainers.xgboost.seeding import Grower, starts_again

IMPORTANCE = ("gain", "weight", "cover")


@dataclass(frozen=True)
class XGBoostCollectives:
    """The workers, who speak through XGBoost's own collectives."""

    rank: int
    size: int

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all workers."""
        found: list[float] = collective.allreduce(np.asarray(values, np.float64), collective.Op.MAX).tolist()
        return found


def train(worker: Worker) -> None:
    """Grow trees until all are there, a metric stops improving, or all workers agree to stop."""
    conf: Conf = worker.conf
    info, splits = worker.data.info, worker.data.splits
    params = worker_params(worker, info)
    # On several workers Ray has joined them through its tracker around this function.
    with plain_errors(), xgboost.config_context(verbosity=params["verbosity"]):
        matrix = make_matrix(splits["train"], info, worker, params)
        evals = [
            (matrix if name == "train" else make_matrix(splits[name], info, worker, params, matrix), name)
            for name in eval_splits(conf, info)
        ]
        begin = InitialModel.of(worker, from_scratch=starts_again(params))
        with nullcontext() if begin.folder is None else reading(begin.folder):
            booster = xgboost.Booster(params, [matrix, *(one for one, _ in evals)], model_file=_trees(begin, info))
        if device_of(booster) != params["device"]:
            raise TrainingError(
                f"XGBoost sees no GPU on worker {worker.rank}.",
                "Install XGBoost with CUDA on every node, or set use_gpu=false.",
            )
        rounds = Rounds(
            worker, conf, XGBoostCollectives(worker.rank, worker.world_size), deciding, _copier(booster), begin
        )
        if begin.init is not None:
            rounds.progress.rounds_before = booster.num_boosted_rounds()
        _describe(worker, params, {"train": matrix, **{name: one for one, name in evals}})
        grower = Grower(booster, params)
        objective, own = functions(conf, worker.builder)
        if info.task == "classification" and gives_margins(conf) and "eval_metric" not in conf.params:
            own = [OfMargins(info), *own]
        metrics = Metrics(own, output_margin=objective is not None)
        rounds.call(build_own(conf.callbacks, worker.builder), lambda: booster)
        with rounds.control.ending():
            while not rounds.done():
                rounds.before_round()
                grower.grow(matrix, rounds.progress.rounds_before + rounds.progress.step, objective)
                rounds.after_round(metrics.measure(booster, evals, rounds.progress.step), MODES)
            rounds.end()
        rounds.describe(_importance(booster, params, info))


def _trees(begin: InitialModel, info: DatasetInfo) -> xgboost.Booster | None:
    """Return the trees to begin with; of another run those that it predicts with."""
    if begin.folder is None:
        return None
    booster = read_trees(begin.folder, info, trusted=wrote_files(begin.folder))
    num_rounds = best_rounds(booster)
    if begin.init is None or num_rounds == 0:
        return booster
    booster = booster[:num_rounds]
    booster.set_attr(best_iteration=None)
    return booster


def _copier(booster: xgboost.Booster) -> Callable[[int], Writer]:
    """Return what copies the trees, with the round that a prediction should end at."""

    def snapshot(num_rounds: int) -> Writer:
        booster.set_attr(best_iteration=str(num_rounds - 1) if num_rounds else None)
        model = booster.save_raw("ubj")

        def write(folder: Path) -> None:
            (folder / MODEL).write_bytes(model)

        return write

    return snapshot


def _describe(worker: Worker, params: dict[str, Any], matrices: dict[str, xgboost.DMatrix]) -> None:
    num_rows = {name: int(matrix.num_row()) for name, matrix in matrices.items()}
    worker.describe({"device": params["device"], "num_threads": params["nthread"], "num_rows": num_rows})


def _importance(booster: xgboost.Booster, params: dict[str, Any], info: DatasetInfo) -> dict[str, dict[str, float]]:
    """Return how much each feature counts, by those of XGBoost's measures that the booster has."""
    if booster.num_boosted_rounds() == 0:
        return {}
    names = booster.feature_names or [f"f{index}" for index in range(booster.num_features())]
    numbers = {name: index for index, name in enumerate(names)}
    found = {}
    for kind in ("weight",) if params.get("booster") == "gblinear" else IMPORTANCE:
        scores = booster.get_score(importance_type=kind)
        values = {numbers[name]: float(np.abs(value).sum()) for name, value in scores.items()}
        found[kind] = named_importance(info, values)
    return found
