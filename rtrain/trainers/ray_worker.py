"""What runs in each Ray Train worker: sets the process up for user code, then calls the plugin's train loop."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from rtrain.config.targets import use_project_root
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint
from rtrain.trainers.base import Job
from rtrain.trainers.output import copied_output
from rtrain.trainers.ray_channel import WorkerChannel
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.worker import Worker


def train_on_worker(config: dict[str, Any]) -> None:
    """Train as one of the workers of ``ray.train``.

    Args:
        config: ``job`` (a ``Job`` without dataset), ``trainer`` (the plugin's name), ``dataset`` (object reference of
            the resident dataset, or the streamed one itself), ``run_dir``, ``marker`` and ``num_threads``.
    """
    import ray.train

    context = ray.train.get_context()
    rank = context.get_world_rank()
    channel = WorkerChannel(Path(config["run_dir"]).name, rank, attempt=f"{time.time():.3f}")
    try:
        with copied_output(rank, channel.send):
            worker = _make_worker(config, context, channel)
            plugin = load_trainer(config["trainer"])
            plugin.train_loop(worker.conf)(worker)
    finally:
        channel.close()


def _make_worker(config: dict[str, Any], context: Any, channel: WorkerChannel) -> Worker:
    import ray

    job: Job = config["job"]
    use_project_root(Path(job.project_root))
    run_dir = Path(config["run_dir"])
    _check_storage(run_dir, config["marker"])
    dataset = config["dataset"]
    worker = Worker(
        rank=context.get_world_rank(),
        world_size=context.get_world_size(),
        local_rank=context.get_local_rank(),
        num_threads=config["num_threads"],
        run_dir=run_dir,
        conf=job.conf.trainer,
        run=job.conf.run,
        dataset=ray.get(dataset) if isinstance(dataset, ray.ObjectRef) else dataset,
        channel=channel,
        allow=job.allow,
        use_gpu=job.conf.scaling.use_gpu,
    )
    if worker.rank == 0:
        newest = latest_checkpoint(run_dir)
        origin = None if newest is None else newest.name
        channel.send({"kind": "attempt", "num_workers": worker.world_size, "from_checkpoint": origin})
    worker.describe({"host": socket.gethostname(), "pid": os.getpid(), "node_rank": context.get_node_rank()})
    return worker


def _check_storage(run_dir: Path, marker: str) -> None:
    """Fail before an epoch of work when this machine doesn't reach the run directory of the driver."""
    path = checkpoints_dir(run_dir) / marker
    if not path.exists():
        raise CheckpointError(
            f"the machine {socket.gethostname()} doesn't reach the run directory {run_dir}: checkpoints would be lost.",
            "Set run.root_dir to a folder on storage that every node mounts at the same path.",
        )
