"""The transformers plugin as the driver sees it; the framework itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtrain.runs.checkpoints import BASE_NAME
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.world import LoopWorld
from rtrain.trainers.loops.epochs.plugin import EpochsPlugin
from rtrain.trainers.torch.world import World
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.transformers import config

ENDLESS = ("constant", "constant_with_warmup", "inverse_sqrt", "reduce_lr_on_plateau")
"""Schedules of ``TrainingArguments`` that don't ask how long a run is."""


class Plugin(EpochsPlugin):
    """Hugging Face transformers: texts and images, from scratch or fine-tuned, with LoRA."""

    Conf = config.Conf
    requires = ("transformers", "peft", "accelerate")
    worker_modules = ("rtrain.trainers.transformers.loop", "ray.train.torch", "torch._dynamo")
    backend = "ray.train.torch.TorchConfig"
    """Ray sets up ``torch.distributed``: gloo on CPUs, nccl on GPUs."""
    reported = ("checkpoint/config.json", "config.json")

    def try_out(self, job: Job) -> None:
        """Take a first step."""
        from rtrain.trainers.transformers.sanity_step import try_first_step

        try_first_step(job)

    def schedule_key(self, conf: Mapping[str, Any]) -> str | None:
        """Return the key of the schedule, unless the schedule does not depend on the length of the run."""
        kind = (conf.get("arguments") or {}).get("lr_scheduler_type", "linear")
        return None if kind in ENDLESS else "trainer.arguments.lr_scheduler_type"

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs."""
        from rtrain.trainers.loops.auto import dataset_of, reported_metrics

        info = dataset_of(job, such_as="text")
        return reported_metrics(job.conf.trainer.evaluate_split, info)

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare its weights, too, with the model and its adapters."""
        from rtrain.trainers.transformers.checkpoint.initial_weights import check_weights

        super().check_init(job, wrote)
        check_weights(job, wrote)

    def notices(self, job: Job) -> Sequence[str]:
        """Report, too, that adapters need a checkpoint which another run may remove."""
        from rtrain.trainers.transformers.checkpoint.whole_model import needed_checkpoint

        return *super().notices(job), *needed_checkpoint(job.conf.trainer)

    def lacks_base(self, checkpoint: Path) -> bool:
        """Return whether the checkpoint names its base."""
        return (checkpoint / BASE_NAME).is_file()

    def world(self) -> LoopWorld:
        """Return what a train loop for torch finds."""
        return World()
