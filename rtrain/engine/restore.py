"""Where a training goes on: the newest checkpoint of its run directory that is whole."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rtrain.runs.checkpoints import read_record
from rtrain.runs.records import AttemptRecord, NoticeRecord
from rtrain.runs.verify import newest_whole, set_aside
from rtrain.trainers.worker import Channel, Worker


def choose_checkpoint(run_dir: Path, channel: Channel) -> Path | None:
    """Return the newest checkpoint whose files are as they were written, or None; newer ones are told and set aside."""
    chosen, wrong = newest_whole(run_dir)
    for folder in dict.fromkeys(finding.checkpoint for finding in wrong):
        first = next(finding for finding in wrong if finding.checkpoint == folder)
        instead = "training begins anew" if chosen is None else f"training goes on from {chosen.name}"
        aside = set_aside(folder)
        text = f"the checkpoint {folder.name} is damaged ({first.path.name}: {first.problem}); {instead}"
        channel.send(NoticeRecord(text=f"{text}. It is now {aside.name}"))
    return chosen


def resume(worker: Worker, chosen: Path | None, strange: Collection[str]) -> None:
    """Tell a worker where to resume from.

    Args:
        worker: The worker.
        chosen: The checkpoint; None: training begins.
        strange: ``Job.strange``.
    """
    worker.resume_from = chosen
    worker.resumes_own = chosen is None or chosen.name not in strange


def announce(worker: Worker) -> None:
    """Tell the driver on which workers training starts, and from where; on rank 0."""
    if worker.rank == 0:
        chosen = worker.resume_from
        step = 0 if chosen is None else read_record(chosen)["step"]
        origin = None if chosen is None else chosen.name
        num_workers = 0 if worker.in_process else worker.world_size
        worker.channel.send(AttemptRecord(num_workers=num_workers, from_checkpoint=origin, from_step=step))
