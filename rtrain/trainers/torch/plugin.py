"""The torch plugin as the driver sees it; torch itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin, TrainLoop
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.torch import config
from rtrain.trainers.trained import LoadedCheckpoint, Predictor


class Plugin(TrainerPlugin):
    """PyTorch: any module, declared by _target_ or trained by your own Ray Train loop."""

    Conf = config.Conf
    requires = ("torch",)
    resumable = TrainerPlugin.resumable | {"train_loop_config"}  # a custom loop decides what to make of it
    can_init = True
    can_skip = True

    def check(self, job: Job) -> None:
        """Check every target's arguments against its signature, and conf against dataset."""
        conf: config.Conf = job.conf.trainer
        if conf.train_loop is not None:
            from rtrain.trainers.torch.custom.loop import check_custom

            check_custom(job)
            return
        from rtrain.trainers.torch.checks import check_conf

        check_conf(job)

    def try_out(self, job: Job) -> None:
        """Take a first step."""
        if job.conf.trainer.train_loop is None:
            from rtrain.trainers.torch.first_step import try_first_step

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

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs, and those of the config; a custom loop has others."""
        from rtrain.trainers.loops.auto import dataset_of, reported_metrics

        conf: config.Conf = job.conf.trainer
        if conf.train_loop is not None:
            return None
        return reported_metrics(conf.evaluate_split, dataset_of(job), tuple(conf.metrics))

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.optimistic import chosen_on_test

        return chosen_on_test(job, job.conf.trainer) if job.conf.trainer.train_loop is None else ()

    def train_loop(self, conf: config.Conf) -> TrainLoop:
        """Return the declared loop, or the user's own."""
        if conf.train_loop is not None:
            from rtrain.trainers.torch.custom.loop import custom_loop

            return custom_loop(conf.train_loop, conf.train_loop_config)
        from rtrain.trainers.torch.loop import train

        return train

    def backend_config(self, conf: config.Conf) -> Any:
        """Let Ray set up ``torch.distributed``: gloo on CPUs, nccl on GPUs."""
        from ray.train.torch import TorchConfig

        return TorchConfig()

    def load_predictor(self, trained: LoadedCheckpoint, device: str) -> Predictor:
        """Build the declared model with the weights of the checkpoint."""
        from rtrain.trainers.torch.predictor import load_predictor

        return load_predictor(trained, device)

    def takes_ray_datasets(self, conf: config.Conf) -> bool:
        """Give the user's own loop its data the way Ray's docs do."""
        return conf.train_loop is not None
