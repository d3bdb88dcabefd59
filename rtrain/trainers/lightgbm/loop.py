"""Boost trees on each worker; LightGBM's data-parallel learner makes the same trees everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm

from rtrain.config.renamed import with_new_names
from rtrain.datasets.base import DatasetInfo
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.checkpoint_errors import reading
from rtrain.trainers.lightgbm.callbacks import BeforeRound, build_own
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.inputs import make_dataset, shared_bins
from rtrain.trainers.lightgbm.metrics import OfMargins, deciding, mode_of, needs_margins
from rtrain.trainers.lightgbm.model_file import MODEL, read_trees
from rtrain.trainers.lightgbm.params import plain_errors, worker_params
from rtrain.trainers.lightgbm.seeding import Draws, starts_again
from rtrain.trainers.loops.boosting.init_model import InitialModel
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.boosting.rounds import Rounds, eval_splits, functions, named_importance
from rtrain.trainers.trained import read_about, wrote_files
from rtrain.trainers.worker import Worker

IMPORTANCE = {"gain": "gain", "weight": "split"}
"""Our name of a measure -> LightGBM's."""


@dataclass(frozen=True)
class LightGBMCollectives:
    """The workers, who speak through Ray: LightGBM lets Python exchange nothing."""

    rank: int
    size: int

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the values of rank 0, which receives a request to stop as soon as the others do."""
        from ray.train.collective import broadcast_from_rank_zero

        found: list[float] = broadcast_from_rank_zero(list(values))
        return found


@plain_errors()
def train(worker: Worker) -> None:
    """Grow trees until all are there, a metric stops improving, or all workers agree to stop."""
    conf: Conf = worker.conf
    info = worker.data.info
    params = worker_params(worker, info)
    begin = InitialModel.of(worker, from_scratch=starts_again(params))
    trees = _trees(begin)
    model = [] if trees is None else [trees]
    rounds = Rounds(worker, conf, LightGBMCollectives(worker.rank, worker.world_size), deciding, _copier(model), begin)
    objective, own = functions(conf, worker.builder)
    margins = [OfMargins(info)] if needs_margins(conf, info) else []
    split = worker.data.splits["train"]
    bins = shared_bins(split, info, params) if worker.world_size > 1 else None
    whole = make_dataset(split, info, (worker.rank, worker.world_size), params, bins)
    evals = _eval_sets(worker, whole, params)
    _describe(worker, params, whole)
    params = params if objective is None else {**params, "objective": objective}
    if begin.init is not None and trees is not None:
        rounds.progress.rounds_before = trees.current_iteration()
    called, by_library = build_own(conf.callbacks, worker.builder, rounds)
    rounds.call(called, lambda: model[0] if model else None)
    with rounds.control.ending():
        if not rounds.done():
            lightgbm.train(
                params,
                whole,
                num_boost_round=conf.num_boost_round - rounds.progress.step,
                valid_sets=list(evals.values()),
                valid_names=list(evals),
                feval=[*own, *margins] or None,
                init_model=trees,
                callbacks=[Draws(params, rounds), *by_library, BeforeRound(rounds, model), AfterRound(rounds)],
            )
        if model:
            rounds.end()
    if model:
        used = rounds.progress.rounds_to_predict(stops_early=conf.early_stopping is not None)
        rounds.describe(_importance(model[0], info, used))


def _trees(begin: InitialModel) -> lightgbm.Booster | None:
    """Return the trees to begin with; of another run those that it predicts with."""
    if begin.folder is None:
        return None
    with reading(begin.folder):
        booster = read_trees(begin.folder, trusted=wrote_files(begin.folder))
        if begin.init is None:
            return booster
        before = with_new_names(Conf, read_about(begin.init).trainer)
        stops_early = before.get("early_stopping") is not None
        best = RoundProgress.load(begin.init).rounds_to_predict(stops_early=stops_early)
        return booster if best == 0 else lightgbm.Booster(model_str=booster.model_to_string(num_iteration=best))


def _eval_sets(worker: Worker, whole: lightgbm.Dataset, params: dict[str, Any]) -> dict[str, lightgbm.Dataset]:
    """Return the splits to evaluate, all rows of them on every worker.

    LightGBM does not add up metrics over workers; like this all of them see the same values and stop at the same round.
    """
    dataset = worker.data
    names = eval_splits(worker.conf, dataset.info)
    shared = worker.world_size > 1
    return {
        name: whole
        if name == "train" and not shared
        else make_dataset(dataset.splits[name], dataset.info, (0, 1), params, whole)
        for name in names
    }


class AfterRound:
    """What LightGBM calls after each round, and after all other callbacks: it ends training."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self.order = 1_000_000  # of the instance: LightGBM gives one to those without

    def __call__(self, env: Any) -> None:
        """Take what LightGBM has measured."""
        found = {f"{split}/{name}": (value, larger) for split, name, value, larger, *_ in env.evaluation_result_list}
        modes = {name: mode_of(name, larger) for name, (_, larger) in found.items()}
        self._rounds.after_round({name: value for name, (value, _) in found.items()}, modes)
        if self._rounds.done():
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)


def _copier(model: list[lightgbm.Booster]) -> Callable[[int], Writer]:
    """Return what copies all trees, and the number of rounds that a prediction should use."""

    def snapshot(num_rounds: int) -> Writer:
        model[0].best_iteration = num_rounds
        text = model[0].model_to_string(num_iteration=-1)

        def write(folder: Path) -> None:
            (folder / MODEL).write_text(text, encoding="utf-8")

        return write

    return snapshot


def _describe(worker: Worker, params: Mapping[str, Any], whole: lightgbm.Dataset) -> None:
    """Tell the manifest what this worker trains on; the evaluation is the same on all, and counts on rank 0."""
    dataset = worker.data
    own = len(whole.label) if whole.label is not None else 0
    evaluated = {name: dataset.splits[name].num_rows for name in eval_splits(worker.conf, dataset.info)}
    num_rows = {name: count if worker.rank == 0 else 0 for name, count in evaluated.items()} | {"train": own}
    worker.describe({"device": params["device_type"], "num_threads": params["num_threads"], "num_rows": num_rows})


def _importance(booster: lightgbm.Booster, info: DatasetInfo, num_rounds: int) -> dict[str, dict[str, float]]:
    """Return how much each feature counts in the rounds that a prediction uses (0: all of them), by measure."""
    values = {name: booster.feature_importance(kind, num_rounds or -1) for name, kind in IMPORTANCE.items()}
    return {name: named_importance(info, dict(enumerate(found))) for name, found in values.items()}
