"""How long a loop of rtrain takes, without its start and without checkpoints."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from rtrain.datasets.base import Dataset
from rtrain.testing.workers import make_worker
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.loop import training


def seconds_of(conf: Conf, dataset: Dataset, channel: Any) -> float:
    """Return the seconds of the torch trainer's loop, which reports to a channel."""
    worker = make_worker(tempfile.mkdtemp(), conf, dataset, channel=channel, checkpoint={"every_epochs": None})
    with training(worker) as loop:
        loop.control.save = lambda snapshot: None  # the best ones are saved whatever the config says
        began = time.perf_counter()
        loop.run()
        return time.perf_counter() - began
