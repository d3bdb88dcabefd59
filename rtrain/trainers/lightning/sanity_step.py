"""The first step of a LightningModule, tried on the driver with the first rows."""

from __future__ import annotations

import lightning.pytorch as pl
import torch

from rtrain.datasets.base import ResidentSplit
from rtrain.trainers.base import Job
from rtrain.trainers.lightning.inputs import EvalBatches, SplitRows, loader_of
from rtrain.trainers.lightning.loop import build_module
from rtrain.trainers.lightning.quiet import quiet
from rtrain.trainers.sanity_check import tried, try_rows
from rtrain.trainers.sanity_worker import sanity_worker
from rtrain.trainers.torch.memory_limit import small_models
from rtrain.trainers.torch.process_settings import torch_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker


def try_first_step(job: Job) -> None:
    """Build the module, and have Lightning train it for a step and validate it with the first rows.

    Raises:
        RtrainError: It fails with these rows; names its key.
    """
    worker = sanity_worker(job)
    batch_rows = worker.conf.batch_size or worker.conf.rows_per_step(1)
    with torch_settings(worker, deterministic=None), quiet():
        try_rows(worker, batch_rows, lambda rows: _first_step(rows, worker))


@small_models()  # a larger one is left to the workers
def _first_step(rows: ResidentSplit, worker: Worker) -> None:
    info, module = worker.data.info, build_module(worker)
    alone = TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    loader = loader_of(SplitRows(rows, info), EvalBatches(rows.num_rows, rows.num_rows, alone))
    # Without callbacks, loggers and checkpoints: nothing is written.
    trainer = pl.Trainer(accelerator="cpu", devices=1, fast_dev_run=True, enable_model_summary=False)
    with tried(f"trainer.module: {worker.conf.module['_target_']}", info, f"rows of shape {info.input_shape}"):
        trainer.fit(module, loader, loader)
