"""The worker that tries model, loss and metrics on the driver, before training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtrain.runs.facts import num_cores
from rtrain.trainers.base import Job
from rtrain.trainers.worker import Worker


class Silence:
    """A channel that leads nowhere."""

    stop_reason = save_requested = None

    def send(self, record: Mapping[str, Any]) -> None:
        """Forget the record."""


def sanity_worker(job: Job) -> Worker:
    """Return a worker for a sanity check: it trains alone, on the CPU, and without a run directory."""
    return job.worker(
        rank=0,
        world_size=1,
        local_rank=0,
        num_threads=num_cores(),
        run_dir=Path(os.devnull),
        channel=Silence(),
        in_process=True,
    )
