"""Train on Ray workers, seen from the driver: build the trainer, record what comes in, turn failures into errors."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable
from typing import Any

from rtrain.cluster.ray_cluster import WHY_LOST, Cluster, is_alive, remove_placement_groups, worker_runtime_env
from rtrain.cluster.scaling import ray_scaling_config, threads_per_worker
from rtrain.engine.failures import FailureReason
from rtrain.engine.ray.attempts import Attempts
from rtrain.engine.ray.channel import DriverChannel
from rtrain.engine.ray.worker_group import Group
from rtrain.process.interrupts import StopRequest
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.filesystem.files import named_errors
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import FailureKind
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.known_errors import LESS_MEMORY

POLL_SECONDS = 0.1
"""Interval at which the driver asks whether the workers have ended."""
HANG_MARGIN_SECONDS = 60
"""What a start takes at most, beyond the time after which workers without news hang."""
ABANDON_SECONDS = 30.0
"""How long workers whose reports can't be recorded may take to end."""
FOREVER_SECONDS = 30 * 24 * 3600


def train_on_ray(
    plugin: TrainerPlugin, job: Job, recorder: Recorder, stop: StopRequest, cluster: Cluster, group: Group | None = None
) -> None:
    """Run the plugin's train loop on ``scaling.num_workers`` workers and wait for the end.

    Args:
        plugin: The plugin.
        job: What it trains.
        recorder: Keeps the run directory.
        stop: Says when training is to end.
        cluster: Where the workers are.
        group: The workers, where other runs have them too, before and after; None: they are this run's own.

    Raises:
        TrainingError: Workers failed more often than ``run.failure`` allows, or did not start.
        RunDirError: What they sent can't be written.
    """
    group = group or Group(secrets.token_hex(8))
    if cluster.session is not None:
        cluster.session.before_end.append(group.leave)
    attempts = Attempts(recorder, job.conf, stop, are_there=group.is_there)
    channel = DriverChannel(group.name, lambda record, _: attempts.accept(record), cluster=cluster)
    marker = checkpoints_dir(recorder.run_dir) / f".reached-{channel.name}"
    with named_errors(recorder.run_dir):
        marker.touch()
        _drop_snapshot(recorder)
    try:
        places = {"run_dir": str(recorder.run_dir), "marker": marker.name, "channel": channel.name}
        start = group.give({**_make_task(job, cluster, group.data), **places})
        if start is not None:
            group.begin(_build_trainer(plugin, job, cluster, *start))
        error = _follow(group, channel, attempts, stop, cluster)
        while error is not None and _may_restart(attempts, cluster, group, error):
            group.begin_again()
            error = _follow(group, channel, attempts, stop, cluster)
    finally:
        marker.unlink(missing_ok=True)
        channel.close()
        if not group.is_there and cluster.session is not None:
            cluster.session.before_end.remove(group.leave)  # the next run there need not keep this one's data
        if group.is_there and not cluster.is_lost:
            attempts.release(channel)
    if error is None and channel.is_cut_off:
        error = _record_loss(attempts, cluster)
    channel.check()
    if error is not None and not attempts.excused:
        raise attempts.error(error) from error


def _drop_snapshot(recorder: Recorder) -> None:
    """Delete the list of checkpoints that Ray kept of the loops of older versions.

    Ray would not start workers when ``run.checkpoint.keep`` has removed one of the list.
    """
    from ray.train.v2._internal.constants import CHECKPOINT_MANAGER_SNAPSHOT_FILENAME

    (checkpoints_dir(recorder.run_dir) / CHECKPOINT_MANAGER_SNAPSHOT_FILENAME).unlink(missing_ok=True)


def _controller_death(error: BaseException) -> FailureReason | None:
    """Return how Ray's process that watches the workers died; None if it did not."""
    from ray.exceptions import OutOfMemoryError, RayActorError

    if isinstance(error, OutOfMemoryError):
        message = "Ray killed the controller process because the machine ran out of memory"
        return FailureReason(kind=FailureKind.OUT_OF_MEMORY, message=message, hint=LESS_MEMORY)
    if isinstance(error, RayActorError):
        message = "the controller process exited unexpectedly"
        return FailureReason(kind=FailureKind.CONTROLLER_DIED, message=message)
    return None


def _may_restart(attempts: Attempts, cluster: Cluster, group: Group, error: BaseException) -> bool:
    """Clear away what a controller that died has left behind, and wait until it is time for the next one."""
    died = _controller_death(error)
    if cluster.is_lost or (died is not None and not is_alive()):
        _record_loss(attempts, cluster)
        return False
    if died is None:
        return False
    remove_placement_groups(group.name)
    return attempts.go_on_after(died) and attempts.wait()


def _record_loss(attempts: Attempts, cluster: Cluster) -> RuntimeError:
    """Record that the cluster was lost, and return what ends the run."""
    message = f"{cluster.lost or 'the machine of this process in the Ray cluster'} was lost"
    hint = f"{WHY_LOST} Resume from the last checkpoint: rtrain resume RUN"
    attempts.end(FailureReason(kind=FailureKind.CLUSTER_LOST, message=message, hint=hint))
    return RuntimeError(message)


def _make_task(job: Job, cluster: Cluster, data: Any) -> dict[str, Any]:
    """Return what each worker receives in addition to the places."""
    import ray

    if data is None and job.dataset is not None:
        data = ray.put(job.dataset)
    return {
        "job": dataclasses.replace(job, dataset=None),
        "dataset": data,
        "num_threads": threads_per_worker(job.conf.scaling, own_cluster=cluster.own and not cluster.shared),
    }


def _build_trainer(
    plugin: TrainerPlugin, job: Job, cluster: Cluster, loop: Callable[..., None], config: dict[str, Any]
) -> Any:
    """Return the trainer whose workers call ``loop`` with ``config``, which holds ``run_dir`` and ``channel``."""
    from ray.train import FailureConfig, RunConfig

    from rtrain.engine.ray.controller import RunTrainer

    conf = job.conf
    arguments: dict[str, Any] = {
        "train_loop_config": config,
        "backend_config": _patient(plugin.backend_config(conf.trainer), conf.run.failure.hang_seconds),
        "scaling_config": ray_scaling_config(conf.scaling, own_cluster=cluster.own),
        "run_config": RunConfig(
            name="checkpoints",
            storage_path=config["run_dir"],
            # Ray's controller always asks the driver, which knows the limits.
            failure_config=FailureConfig(max_failures=-1, controller_failure_limit=-1, max_preemption_failures=-1),
            worker_runtime_env=worker_runtime_env(
                conf.cluster, cluster, job.project_root, plugin.worker_env(conf.trainer)
            ),
        ),
        **_ray_data_arguments(plugin, job),
    }
    return RunTrainer(
        loop,
        channel=config["channel"],
        cluster=cluster,
        start_timeout_seconds=conf.scaling.start_timeout_seconds,
        **arguments,
    )


def _patient(backend_config: Any, hang_seconds: float | None) -> Any:
    """Let collective operations wait longer than the watchdog does, which knows more of why they wait."""
    if isinstance(getattr(backend_config, "timeout_s", None), int):
        seconds = FOREVER_SECONDS if hang_seconds is None else hang_seconds + HANG_MARGIN_SECONDS
        backend_config.timeout_s = max(backend_config.timeout_s, int(seconds))
    return backend_config


def _ray_data_arguments(plugin: TrainerPlugin, job: Job) -> dict[str, Any]:
    if job.dataset is None or not plugin.takes_ray_datasets(job.conf.trainer):
        return {}
    from ray.train import DataConfig

    from rtrain.datasets.ray_data import ray_datasets

    shared = list(plugin.datasets_to_split(job.conf.trainer, job.dataset))
    return {
        "datasets": ray_datasets(job.dataset, job.conf.run.seed),
        "dataset_config": DataConfig(datasets_to_split=shared),
    }


def _follow(
    group: Group, channel: DriverChannel, attempts: Attempts, stop: StopRequest, cluster: Cluster
) -> BaseException | None:
    """Answer the controller and pass on a wish to stop until training is over; return what it ended by.

    The loss of the cluster is noticed here, as Ray ends the process soon after.

    Raises:
        RtrainError: What the workers sent could not be recorded; they have been asked to end.
    """
    asked = False
    try:
        while not group.is_over(POLL_SECONDS):
            if cluster.is_lost:
                return RuntimeError("a process of Ray's has ended")
            channel.check()
            if stop.reason is not None and not asked:
                channel.request_stop(stop.reason)
                asked = True
            attempts.answer(channel)
    except Exception:
        _abandon(group, channel)
        raise
    return group.error


def _abandon(group: Group, channel: DriverChannel) -> None:
    """Have the workers save what they can, and end; nothing is recorded any more."""
    deadline = time.monotonic() + ABANDON_SECONDS
    channel.give_up()
    while not group.is_over(POLL_SECONDS) and time.monotonic() < deadline:
        pass
