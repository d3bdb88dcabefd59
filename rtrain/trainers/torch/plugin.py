"""The torch plugin as the driver sees it; torch itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainLoop
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.loops.epochs.plugin import EpochsPlugin
from rtrain.trainers.torch import config


class Plugin(EpochsPlugin):
    """PyTorch: any module, declared by _target_ or trained by your own Ray Train loop."""

    Conf = config.Conf
    requires = ("torch",)
    resumable = EpochsPlugin.resumable | {"train_loop_config"}  # a custom loop decides what to make of it

    def own_function(self, conf: config.Conf) -> Any:
        """Return the user's own loop."""
        return conf.train_loop

    def check(self, job: Job) -> None:
        """Check every target's arguments against its signature, and conf against dataset."""
        if job.conf.trainer.train_loop is None:
            super().check(job)
            return
        from rtrain.trainers.torch.custom.loop import check_custom

        check_custom(job)

    def try_out(self, job: Job) -> None:
        """Take a first step."""
        if job.conf.trainer.train_loop is None:
            from rtrain.trainers.torch.sanity_step import try_first_step

            try_first_step(job)

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let the optimizer's numbers change."""
        declared = conf.get("train_loop") is None and conf.get("strategy") != "deepspeed"
        return frozenset({"optimizer", "clip_norm", "loss"}) if declared else frozenset()

    def directions(self, conf: config.Conf, allow: Sequence[str]) -> Directions:
        """Return which way the config's metrics get better, as torchmetrics says it."""
        if conf.train_loop is not None or not conf.metrics:
            return Directions()
        from rtrain.trainers.torch.losses.metrics import directions

        return directions(conf.metrics, allow)

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the declared loop, or the user's own."""
        if conf.train_loop is None:
            return super().train_loop(conf)
        from rtrain.trainers.torch.custom.loop import custom_loop

        return custom_loop(conf.train_loop, conf.train_loop_config)

    def backend_config(self, conf: config.Conf) -> Any:
        """Let Ray set up ``torch.distributed``: gloo on CPUs, nccl on GPUs."""
        from ray.train.torch import TorchConfig

        return TorchConfig()

    def takes_ray_datasets(self, conf: config.Conf) -> bool:
        """Give the user's own loop its data the way Ray's docs do."""
        return conf.train_loop is not None
