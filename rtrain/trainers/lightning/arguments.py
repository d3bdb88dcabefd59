"""Arguments of Lightning's ``Trainer``, and what rtrain has in place of some."""

from __future__ import annotations

import inspect

import lightning.pytorch as pl

OURS = {
    "accelerator": "scaling.use_gpu",
    "devices": "scaling.num_workers",
    "num_nodes": "scaling.num_workers",
    "strategy": "scaling.num_workers: workers average gradients (ddp)",
    "max_epochs": "trainer.max_epochs",
    "max_steps": "trainer.max_steps",
    "max_time": "trainer.max_seconds",
    "enable_checkpointing": "run.checkpoint",
    "default_root_dir": "run.root_dir",
    "use_distributed_sampler": "nothing: each row is used once",
    "log_every_n_steps": "run.log_every_steps",
    "fast_dev_run": "trainer.max_steps",
    "barebones": "nothing: metrics are reported",
    "enable_progress_bar": "rtrain's display",
    "reload_dataloaders_every_n_epochs": "nothing: loaders are opened once",
    "overfit_batches": "dataset.limit",
}
"""Arguments of the Trainer that rtrain decides, and what to use in their place."""


def trainer_arguments() -> list[str]:
    """Return the names of the arguments of Lightning's ``Trainer``."""
    return list(inspect.signature(pl.Trainer).parameters)
