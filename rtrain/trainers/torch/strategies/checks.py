"""What can be wrong with a strategy and be found before anything starts."""

from __future__ import annotations

from rtrain.config.did_you_mean import to_try
from rtrain.config.value_types.num_workers import Elastic
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, NotInstalledError
from rtrain.plugins import missing_modules
from rtrain.trainers.base import Job
from rtrain.trainers.torch.build import build_outline
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.strategies import strategy_class
from rtrain.trainers.torch.strategies.base import Strategy

FIXED_WORKERS = ("deepspeed", "tp", "fsdp_tp")
"""Strategies whose checkpoints, or parts of the model, belong to one number of workers."""


def check_strategy(conf: Conf, info: DatasetInfo, job: Job) -> None:
    """Check that the strategy is installed, and that it can do what the conf asks for with this model and data.

    Raises:
        ConfigError: Names the key.
    """
    strategy, num_workers = strategy_class(conf.strategy), job.conf.scaling.num_workers
    if missing_modules(strategy.requires):
        needed = ", ".join(strategy.requires)
        raise NotInstalledError(f"trainer.strategy={conf.strategy} needs {needed}.", to_try(strategy.install))
    _check_refused(strategy, conf)
    _check_sizes(conf, info, num_workers)
    if conf.strategy == "deepspeed" and job.conf.run.failure.nan_loss == "skip":
        message = "run.failure.nan_loss=skip does not work with trainer.strategy=deepspeed."
        raise ConfigError(message, "Use raise, or stop.")
    if conf.strategy == "ddp" and conf.strategy_options.activation_checkpointing is None:
        return
    model = build_outline(conf, info, job.builder)
    if model is not None:
        strategy.check_model(model, conf, max(1, num_workers))


def _check_refused(strategy: type[Strategy], conf: Conf) -> None:
    for name, only in strategy.refused.items():
        if getattr(conf, name) != only:
            value = "null" if only is None else str(only).lower()
            raise ConfigError(
                f"trainer.{name} does not work with trainer.strategy={conf.strategy}.",
                to_try(f"trainer.{name}={value}", "or trainer.strategy=ddp"),
            )
    if conf.strategy != "ddp" and conf.precision == "fp16":
        raise ConfigError(
            f"trainer.precision=fp16 does not work with trainer.strategy={conf.strategy}.",
            to_try("trainer.precision=bf16", "which needs no loss scaling"),
        )
    if conf.precision != "fp32" and conf.strategy_options.param_dtype != "fp32":
        raise ConfigError(
            "trainer.precision and trainer.strategy_options.param_dtype both set the compute type.",
            to_try("trainer.precision=fp32"),
        )


def _check_sizes(conf: Conf, info: DatasetInfo, num_workers: int) -> None:
    if isinstance(num_workers, Elastic) and conf.strategy in FIXED_WORKERS:
        raise ConfigError(
            f"trainer.strategy={conf.strategy} resumes only with the same number of workers, not with a range.",
            to_try("trainer.strategy=fsdp", "or set a fixed number of workers"),
        )
    tp_size = conf.strategy_options.tp_size
    if conf.strategy == "fsdp_tp" and num_workers > 1 and num_workers % tp_size != 0:
        raise ConfigError(f"trainer.strategy_options.tp_size={tp_size} does not divide num_workers={num_workers}.")
    if conf.num_with_own_rows(num_workers) < num_workers and info.memory == "stream":
        raise ConfigError(
            f"trainer.strategy={conf.strategy} needs the same rows on several workers, which streaming does not "
            "support.",
            to_try("dataset.memory=resident", "or trainer.strategy=fsdp"),
        )
