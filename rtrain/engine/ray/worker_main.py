"""What runs in each Ray Train worker: sets the process up for user code, then calls the plugin's train loop."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.forgetting import project_state_forgotten
from rtrain.datasets.base import Dataset
from rtrain.engine.crash import crash_log
from rtrain.engine.log_capture import copied_output, library_news_unshown
from rtrain.engine.ray.channel import WorkerChannel
from rtrain.engine.run_worker import choose_checkpoint, run_worker
from rtrain.engine.watchdog import Watchdog
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.filesystem.files import private_files
from rtrain.trainers.base import Job
from rtrain.trainers.liveness import Life
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.worker import Worker


def train_on_worker(config: dict[str, Any], *, stays: bool = False) -> None:
    """Train as one of the workers of ``ray.train``.

    Args:
        config: ``job`` (a ``Job`` without dataset), ``dataset`` (an object reference to it, or None), ``run_dir``,
            ``marker`` (a file there), ``channel`` (its name) and ``num_threads``.
        stays: The process trains other runs after this one.
    """
    import ray.train

    context = ray.train.get_context()
    rank = context.get_world_rank()
    channel = WorkerChannel(config["channel"], rank)
    job: Job = config["job"]
    life = Life()
    try:
        output = copied_output(rank, channel.send, job.redact, life)
        with private_files(job.conf.run.private), output, library_news_unshown():
            worker = _make_worker(config, context, channel, stays=stays, life=life)
            with crash_log(worker.run_dir, rank), _watched(worker, channel):
                run_worker(load_trainer(job.trainer_name, worker.conf), worker, node_rank=context.get_node_rank())
    finally:
        channel.close()
    channel.check()


def train_in_turn(config: dict[str, Any]) -> None:
    """Train one run after the other, as one of the workers of ``ray.train``, until this process is ended.

    Args:
        config: ``task_queue``: the actor that knows the runs, as ``worker_group.KeptGroup`` tells them.
    """
    import ray

    task_queue, done = config["task_queue"], 0
    while True:
        number = _next_number(task_queue, done)
        run = ray.get(task_queue.task.remote())
        with project_state_forgotten(run["job"].project_root), kept_random_numbers():
            train_on_worker(run, stays=True)
        del run
        gc.collect()
        done = number


def _next_number(task_queue: Any, done: int) -> int:
    """Wait for all ranks to be done with a run, and for the next one; return its number."""
    import ray
    from ray.train.collective import barrier, broadcast_from_rank_zero

    barrier()
    number = None
    while number is None and ray.train.get_context().get_world_rank() == 0:
        number = ray.get(task_queue.next_number.remote(done))
    found: int = broadcast_from_rank_zero(number)
    return found


@contextmanager
def _watched(worker: Worker, channel: WorkerChannel) -> Iterator[None]:
    """End this process if the block gets no further for ``run.failure.hang_seconds``."""
    seconds = worker.run.failure.hang_seconds
    if seconds is None:
        yield
        return
    watchdog = Watchdog(worker.rank, worker.life, seconds, worker.run_dir / "logs", channel)
    try:
        yield
    finally:
        watchdog.close()


def _make_worker(config: dict[str, Any], context: Any, channel: WorkerChannel, **more: Any) -> Worker:
    job: Job = config["job"]
    use_project_root(Path(job.project_root))
    run_dir, rank = Path(config["run_dir"]), context.get_world_rank()
    check_storage(run_dir, config["marker"])
    return job.worker(
        rank=rank,
        world_size=context.get_world_size(),
        local_rank=context.get_local_rank(),
        num_threads=config["num_threads"],
        run_dir=run_dir,
        dataset=_fetch_dataset(config),
        channel=channel,
        use_gpu=job.conf.scaling.use_gpu,
        resume_from=_agreed_checkpoint(run_dir, rank, channel),
        **more,
    )


def _agreed_checkpoint(run_dir: Path, rank: int, channel: WorkerChannel) -> Path | None:
    """Return what all ranks resume from: one of them looks, and the others wait until it has."""
    from ray.train.collective import broadcast_from_rank_zero

    chosen = choose_checkpoint(run_dir, channel) if rank == 0 else None
    name: str | None = broadcast_from_rank_zero(None if chosen is None else chosen.name)
    return None if name is None else checkpoints_dir(run_dir) / name


def _fetch_dataset(config: dict[str, Any]) -> Dataset | None:
    """Return the dataset: its arrays lie in memory that all workers of this machine share."""
    import ray

    if config["dataset"] is None:
        return None
    dataset: Dataset = ray.get(config["dataset"])
    return dataset


def check_storage(run_dir: Path, marker: str) -> None:
    """Fail before an epoch of work when this machine doesn't reach the run directory of the driver."""
    path = checkpoints_dir(run_dir) / marker
    if not path.exists():
        raise CheckpointError(
            f"the machine {socket.gethostname()} can't access the run directory {run_dir}: checkpoints would be lost.",
            "Set run.root_dir to a folder on storage that every node mounts at the same path.",
        )
