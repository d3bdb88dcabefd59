"""The torch plugin as the driver sees it; torch itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.config.targets.builder import Builder
from rtrain.trainers.base import Job
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.loops.epochs.plugin import EpochsPlugin
from rtrain.trainers.torch import config, known_errors, world


class Plugin(EpochsPlugin):
    """PyTorch: any module, declared by _target_ or trained by your own Ray Train loop."""

    Conf = config.Conf
    requires = ("torch",)
    worker_modules = ("rtrain.trainers.torch.loop", "ray.train.torch", "torch._dynamo")
    backend = "ray.train.torch.TorchConfig"
    """Ray sets up ``torch.distributed``: gloo on CPUs, nccl on GPUs."""
    takes_original_sizes = True
    watched = world.WATCHED
    hints = known_errors.HINTS

    def try_out(self, job: Job) -> None:
        """Take a first step."""
        from rtrain.trainers.torch.sanity_step import try_first_step

        try_first_step(job)

    def decides_first_step(self, conf: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the rates of torch's own optimizers: ``check`` builds these, and they refuse bad ones."""
        optimizer = conf.get("optimizer") or {}
        if not str(optimizer.get("_target_")).startswith("torch.optim."):
            return conf
        rest = {key: value for key, value in optimizer.items() if not isinstance(value, float)}
        return {**conf, "optimizer": rest}

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let the optimizer's numbers change."""
        return frozenset() if conf.get("strategy") == "deepspeed" else frozenset({"optimizer", "clip_norm", "loss"})

    def directions(self, conf: config.Conf, builder: Builder) -> Directions:
        """Return which way the config's metrics get better, as torchmetrics says it."""
        if not conf.metrics:
            return Directions()
        from rtrain.trainers.torch.losses.metrics import directions

        return directions(conf.metrics, builder)
