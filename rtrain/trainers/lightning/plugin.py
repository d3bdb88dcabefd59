"""The lightning plugin as the driver sees it; Lightning itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.lightning import config
from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction
from rtrain.trainers.torch.world import World
from rtrain.trainers.trained import CheckpointMetadata, LoadedCheckpoint, OwnRows


def _is_joined(trainer: Any, *_: Any, **__: Any) -> bool:
    return bool(trainer.world_size > 1)


JOINS = "ray.train.lightning.RayDDPStrategy and RayLightningEnvironment as plugins of its Trainer"


class Plugin(TrainerPlugin):
    """Lightning: a LightningModule and its data, by Lightning's own Trainer."""

    Conf = config.Conf
    requires = ("lightning",)
    worker_modules = ("rtrain.trainers.lightning.loop", "ray.train.torch", "torch._dynamo")
    backend = "ray.train.torch.TorchConfig"
    """Ray sets up ``torch.distributed``: gloo on CPUs, nccl on GPUs."""
    reported = ("checkpoint.ckpt", "*.ckpt")
    watched = (
        TrainingFunction("lightning.pytorch.trainer.trainer", "Trainer._fit_impl", "lightning", _is_joined, JOINS),
        TrainingFunction("pytorch_lightning.trainer.trainer", "Trainer._fit_impl", "lightning", _is_joined, JOINS),
    )
    callback_packages = ("lightning", "pytorch_lightning")
    hints = (
        (
            r"Cannot use `?(\w+)`? callback with `?Trainer`? that has no logger",
            "rtrain records metrics itself and gives Lightning no logger. {0} needs one in trainer.trainer_args: "
            "logger: [{{_target_: lightning.pytorch.loggers.CSVLogger, save_dir: logs}}]",
        ),
    )
    can_init = True
    can_skip = True

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.lightning.config import as_epochs
        from rtrain.trainers.loops.optimistic import chosen_on_test

        return () if job.dataset is None else chosen_on_test(job, as_epochs(job.conf.trainer))

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare columns and classes with those that the weights were learned for."""
        from rtrain.trainers.loops.epochs.same_places import check_same_places

        check_same_places(job, wrote)

    def try_out(self, job: Job) -> None:
        """Let Lightning take a first step and validate it, if the rows are a dataset's."""
        if job.dataset is not None:
            from rtrain.trainers.lightning.sanity_step import try_first_step

            try_first_step(job)

    def brings_rows(self, conf: Mapping[str, Any]) -> bool:
        """Return whether a datamodule has the rows."""
        return conf.get("datamodule") is not None

    def load_own_rows(self, trained: LoadedCheckpoint, device: str) -> OwnRows:
        """Return module and datamodule."""
        found: OwnRows = self.part("own_rows").OwnRows(trained, device)
        return found

    def world(self) -> LoopWorld:
        """Return what a train loop for torch finds."""
        return World()
