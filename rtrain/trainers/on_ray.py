"""Train on Ray workers, seen from the driver: build the trainer, record what comes in, turn failures into errors."""

from __future__ import annotations

import dataclasses
import os
import secrets
import threading
from typing import Any

from rtrain.cluster import Cluster, worker_runtime_env
from rtrain.datasets.stream import StreamSplit
from rtrain.errors import TrainingError
from rtrain.interrupts import StopRequest
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.recorder import Recorder
from rtrain.scaling import ray_scaling_config, threads_per_worker
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.ray_channel import DriverChannel

CONTROLLER_FAILURE_LIMIT = 2
POLL_SECONDS = 0.1


def train_on_ray(plugin: TrainerPlugin, job: Job, recorder: Recorder, stop: StopRequest, cluster: Cluster) -> None:
    """Run the plugin's train loop on ``scaling.num_workers`` workers and wait for the end.

    Raises:
        TrainingError: A worker failed more often than ``run.failure.max_failures``, or the workers did not start.
    """
    channel = DriverChannel(secrets.token_hex(8), recorder.accept)
    marker = checkpoints_dir(recorder.run_dir) / f".reached-{channel.name}"
    marker.touch()
    try:
        places = {"run_dir": str(recorder.run_dir), "marker": marker.name, "channel": channel.name}
        trainer = _build_trainer(plugin, job, places, cluster)
        error = _fit(trainer, channel, stop)
    finally:
        marker.unlink(missing_ok=True)
        channel.close()
    if error is not None:
        raise _explain(error, recorder, job) from error


def _build_trainer(plugin: TrainerPlugin, job: Job, places: dict[str, str], cluster: Cluster) -> Any:
    import ray
    from ray.train import FailureConfig, RunConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from rtrain.trainers.ray_trainer import LocalClusterTrainer
    from rtrain.trainers.ray_worker import train_on_worker

    conf = job.conf
    config = {
        "job": dataclasses.replace(job, dataset=None),
        "dataset": None if job.dataset is None else ray.put(job.dataset),
        "sharded": is_sharded(plugin, job),
        **places,
        "num_threads": threads_per_worker(conf.scaling, own_cluster=cluster.own),
    }
    failures = FailureConfig(
        max_failures=conf.run.failure.max_failures, controller_failure_limit=CONTROLLER_FAILURE_LIMIT
    )
    arguments: dict[str, Any] = {
        "train_loop_config": config,
        "backend_config": plugin.backend_config(conf.trainer),
        "scaling_config": ray_scaling_config(conf.scaling),
        "run_config": RunConfig(
            name="checkpoints",
            storage_path=places["run_dir"],
            failure_config=failures,
            worker_runtime_env=worker_runtime_env(
                conf.cluster, cluster, job.project_root, plugin.worker_env(conf.trainer)
            ),
        ),
        **_ray_data_arguments(plugin, job),
    }
    if cluster.own:
        timeout = conf.scaling.start_timeout_seconds
        return LocalClusterTrainer(train_on_worker, start_timeout_seconds=timeout, **arguments)
    # Ray takes these from the environment only.
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = str(conf.scaling.start_timeout_seconds)
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")
    return DataParallelTrainer(train_on_worker, **arguments)


def is_sharded(plugin: TrainerPlugin, job: Job) -> bool:
    """Tell whether Ray Data reads the data: for loops that ask for it, and for streams that several workers share."""
    if job.dataset is None:
        return False
    streams = any(isinstance(split, StreamSplit) for split in job.dataset.splits.values())
    shared = streams and job.conf.scaling.num_workers > 1 and not plugin.reads_own_rows
    return shared or plugin.takes_ray_datasets(job.conf.trainer)


def _ray_data_arguments(plugin: TrainerPlugin, job: Job) -> dict[str, Any]:
    if job.dataset is None or not is_sharded(plugin, job):
        return {}
    from rtrain.datasets.ray_shards import StreamDataConfig, ray_datasets

    return {"datasets": ray_datasets(job.dataset, job.conf.run.seed), "dataset_config": StreamDataConfig()}


def _fit(trainer: Any, channel: DriverChannel, stop: StopRequest) -> BaseException | None:
    """Run ``trainer.fit()`` beside this thread, which stays free for signals; return what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            trainer.fit()
        except BaseException as error:  # returned to the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="rtrain-fit", daemon=True)
    thread.start()
    asked = False
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        if stop.reason is not None and not asked:
            channel.request_stop(stop.reason)
            asked = True
    return raised[0] if raised else None


def _explain(error: BaseException, recorder: Recorder, job: Job) -> TrainingError:
    """Say what a worker really raised, and where; Ray's own error wraps it several times."""
    if recorder.failures:
        first = min(recorder.failures, key=lambda failure: failure["time"])
        later = sorted({failure["rank"] for failure in recorder.failures} - {first["rank"]})
        also = f" (worker {', '.join(map(str, later))} failed after it)" if later else ""
        return TrainingError(
            f"{first['type']} on worker {first['rank']}{also}: {first['message']}",
            f"The whole traceback is in {recorder.run_dir}/logs/worker-{first['rank']}.log",
        )
    if _start_timed_out(error):
        return TrainingError(
            f"the {job.conf.scaling.num_workers} workers did not start within "
            f"{job.conf.scaling.start_timeout_seconds:g} seconds.",
            "Ask for fewer workers, wait until the cluster is free, or raise scaling.start_timeout_seconds.",
        )
    return TrainingError(f"training failed: {str(error).strip()}")


def _start_timed_out(error: BaseException) -> bool:
    from ray.train.v2._internal.exceptions import WorkerGroupStartupTimeoutError

    return isinstance(getattr(error, "controller_failure", error), WorkerGroupStartupTimeoutError)
