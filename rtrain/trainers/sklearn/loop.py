"""Fit an estimator: cross-validation if it is asked for, then one call of fit, or epochs of partial_fit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from joblib import parallel_config
from threadpoolctl import threadpool_limits

from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan
from rtrain.trainers.loops.collectives import SingleProcess
from rtrain.trainers.loops.epochs.conf import EpochsConf
from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.sklearn.build import build_estimator
from rtrain.trainers.sklearn.config import Conf
from rtrain.trainers.sklearn.cross_validation import cross_validate
from rtrain.trainers.sklearn.learner import SklearnLearner
from rtrain.trainers.sklearn.told_warnings import told_warnings
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Fit the estimator, evaluate it, and leave a checkpoint."""
    conf: Conf = worker.conf
    info, num_threads = worker.data.info, conf.num_threads or worker.num_threads
    estimator = build_estimator(conf, info, worker.run.seed, worker.builder)
    learner = SklearnLearner(estimator, info, whole=conf.max_epochs is None, num_threads=num_threads)
    loop = EpochLoop(worker, epochs_conf(conf, info), learner, SingleProcess())
    told = told_warnings(conf.estimator, worker.notice)
    with told, threadpool_limits(num_threads), _side_by_side(worker, conf, num_threads):
        if conf.cross_validation is not None and loop.progress.step == 0:
            scores = cross_validate(estimator, _all_rows(worker), info, conf.cross_validation, worker.run.seed)
            worker.report(scores, step=0, epoch=0)
        loop.run()
    worker.describe_model(learner.model_facts())


def epochs_conf(conf: Conf, info: DatasetInfo) -> EpochsConf:
    """Return the epochs of a training; one call of ``fit`` is one epoch of one step, in the order of the data."""
    whole = conf.max_epochs is None
    return EpochsConf(
        max_epochs=conf.max_epochs or 1,
        max_seconds=conf.max_seconds,
        global_batch_size=conf.batch_size or info.num_rows["train"],
        shuffle=not whole,
        eval_batch_size=10_000,
        evaluate_split=conf.evaluate_split,
        early_stopping=conf.early_stopping,
    )


def _all_rows(worker: Worker) -> Batch:
    split = worker.data.splits["train"]
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=split.num_rows, seed=0, shuffle=False)
    return next(iter(split.batches(plan)))


def _side_by_side(worker: Worker, conf: Conf, num_threads: int) -> AbstractContextManager[Any]:
    """Let joblib use the cores of this worker, or the free CPUs of the cluster."""
    if worker.in_process or conf.parallel == "local" or (conf.parallel == "auto" and _num_machines() < 2):
        local: AbstractContextManager[Any] = parallel_config(n_jobs=num_threads)
        return local
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    num_jobs = max(1, int(ray.available_resources().get("CPU", 0)))
    on_cluster: AbstractContextManager[Any] = parallel_config(backend="ray", n_jobs=num_jobs)
    return on_cluster


def _num_machines() -> int:
    import ray

    return sum(node["Alive"] for node in ray.nodes())
