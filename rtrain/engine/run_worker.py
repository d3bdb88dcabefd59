"""One worker from its checkpoint to the end of its train loop: the same in every engine."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from rtrain.process.quick_imports import search_as_usual
from rtrain.runs.checkpoints import read_record
from rtrain.runs.records import AttemptRecord, NoticeRecord
from rtrain.runs.verify import newest_whole, set_aside
from rtrain.trainers.base import TrainerPlugin
from rtrain.trainers.worker import Channel, Worker


def choose_checkpoint(run_dir: Path, channel: Channel) -> Path | None:
    """Return the newest checkpoint whose files are intact, or None; newer ones are reported and set aside."""
    chosen, wrong = newest_whole(run_dir)
    for folder in dict.fromkeys(finding.checkpoint for finding in wrong):
        first = next(finding for finding in wrong if finding.checkpoint == folder)
        instead = "training starts from scratch" if chosen is None else f"training continues from {chosen.name}"
        aside = set_aside(folder)
        text = f"the checkpoint {folder.name} is damaged ({first.path.name}: {first.problem}); {instead}"
        channel.send(NoticeRecord(text=f"{text}. It was renamed to {aside.name}"))
    return chosen


def run_worker(plugin: TrainerPlugin, worker: Worker, **place: int) -> None:
    """Train to the end of the plugin's loop, and until its last checkpoint is written.

    Args:
        plugin: The plugin.
        worker: It knows the checkpoint to resume from.
        place: What the manifest says about the place, in addition to host and process.

    Raises:
        BaseException: What the loop raises.
    """
    search_as_usual()
    if worker.rank == 0:
        worker.channel.send(_attempt(worker))
    worker.describe({"host": socket.gethostname(), "pid": os.getpid(), **place})
    with worker.checkpoints.finishing():
        plugin.train_loop(worker.conf)(worker)


def _attempt(worker: Worker) -> AttemptRecord:
    """Return on how many workers training starts, and from where."""
    chosen = worker.resume_from
    return AttemptRecord(
        num_workers=0 if worker.in_process else worker.world_size,
        from_step=0 if chosen is None else read_record(chosen)["step"],
        from_checkpoint=None if chosen is None else chosen.name,
    )
