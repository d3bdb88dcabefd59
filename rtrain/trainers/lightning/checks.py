"""What can be wrong with a lightning config and be found before anything starts."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from rtrain.config.diagnostics.meant.keys.words import hint_about
from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.did_you_mean import to_try, use_instead
from rtrain.config.targets.arguments import named_in_error
from rtrain.errors import ConfigError, first_line
from rtrain.trainers.base import Job
from rtrain.trainers.lightning.arguments import OURS, trainer_arguments
from rtrain.trainers.lightning.config import Conf, default_monitor
from rtrain.trainers.lightning.quiet import quiet
from rtrain.trainers.loops.auto import (
    check_float32,
    check_quantities,
    check_roles,
    check_split,
    evaluated_split,
    fill_from_dataset,
)
from rtrain.trainers.loops.directions import Directions, check_modes
from rtrain.trainers.loops.number_ranges import RATES, check_numbers
from rtrain.trainers.torch.process_settings import check_gpu

OBJECTS = ("callbacks", "logger")
"""Arguments of the Trainer that are objects, each by its ``_target_``."""
AVERAGING = "{_target_: lightning.pytorch.callbacks.EMAWeightAveraging, decay: 0.99}"


def check_conf(job: Job) -> None:
    """Check targets, the Trainer's arguments, splits and sizes.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    if job.dataset is None and conf.datamodule is None:
        raise ConfigError(
            "the lightning trainer needs a dataset or trainer.datamodule.",
            "Add `- dataset: digits` to the defaults list, or give trainer.datamodule a _target_.",
        )
    if job.dataset is not None and conf.datamodule is not None:
        raise ConfigError(
            "the lightning trainer takes a dataset or trainer.datamodule, not both.", to_try("dataset=null")
        )
    if job.dataset is not None:
        check_quantities("lightning", job.dataset.info)
        check_roles("lightning", job.dataset.info, ())
        check_float32("lightning", job.dataset.info)
    check_gpu(job.conf.scaling)
    check_numbers(conf.module, "trainer.module", (*RATES, "weight_decay"))
    module = conf.module if job.dataset is None else fill_from_dataset(conf.module, job.dataset.info, "trainer.module")
    _check_class(module, "trainer.module", pl.LightningModule, job)
    if conf.datamodule is not None:
        _check_class(conf.datamodule, "trainer.datamodule", pl.LightningDataModule, job)
    _check_trainer_args(conf.trainer_args, job)
    _check_sizes(conf, job)
    split = "val" if job.dataset is None else evaluated_split(conf.evaluate_split, job.dataset.info)
    check_modes(job.conf.run.checkpoint.best, conf, Directions(), default_monitor(split))


def _check_class(node: dict[str, Any], where: str, kind: type, job: Job) -> None:
    job.builder.check_node(node, where)
    found = job.builder.locate(node["_target_"], f"{where}._target_")
    if isinstance(found, type) and not issubclass(found, kind):
        raise ConfigError(f"{where}: {node['_target_']} is not a {kind.__name__}.", "For other modules: trainer=torch")


def _check_trainer_args(given: dict[str, Any], job: Job) -> None:
    known = trainer_arguments()
    for name, value in given.items():
        where = f"trainer.trainer_args.{name}"
        if name in OURS:
            raise ConfigError(f"{where} is set by rtrain.", use_instead(OURS[name]))
        if name not in known:
            raise ConfigError(f"{where}: Lightning's Trainer has no '{name}'.", hint_about(Conf, where, value, known))
        for number, node in enumerate(value if isinstance(value, list) else [value]):
            if (isinstance(node, dict) and "_target_" in node) or (
                name in OBJECTS and not isinstance(node, bool | None)
            ):
                job.builder.check_node(node, f"{where}.{number}" if isinstance(value, list) else where)
                _refuse_callbacks(node, where, job)
    _check_plain_args({name: value for name, value in given.items() if "_target_" not in str(value)})


def _check_plain_args(plain: dict[str, Any]) -> None:
    """Have Lightning's Trainer take all arguments but those that are objects."""
    usual = {"enable_progress_bar": False, "enable_model_summary": False}
    try:
        with quiet():
            pl.Trainer(accelerator="cpu", devices=1, **{**usual, **plain, "logger": False})
    except (TypeError, ValueError, MisconfigurationException) as error:
        name = named_in_error(str(error), plain)
        if name is None:
            raise ConfigError(f"trainer.trainer_args: Lightning rejects them: {error}") from error
        problem = f"trainer.trainer_args.{name}: Lightning rejects {as_written(plain[name])}: {first_line(error)}"
        raise ConfigError(problem) from error


def _refuse_callbacks(node: dict[str, Any], where: str, job: Job) -> None:
    """Refuse callbacks that write checkpoints, or change the weights after the last evaluation and checkpoint."""
    found = job.builder.locate(node["_target_"], where)
    if not isinstance(found, type):
        return
    if issubclass(found, pl.callbacks.Checkpoint):
        raise ConfigError(f"{where}: rtrain writes the checkpoints.", use_instead("run.checkpoint"))
    if issubclass(found, pl.callbacks.StochasticWeightAveraging):
        raise ConfigError(
            f"{where}: {found.__name__} applies the average only when training has ended, after the last evaluation "
            "and checkpoint.",
            f"Use one that evaluates and saves the average: {AVERAGING}",
        )


def _check_sizes(conf: Conf, job: Job) -> None:
    workers = max(1, job.conf.scaling.num_workers)
    if job.dataset is None:
        if conf.evaluate_split not in ("auto", "none"):
            raise ConfigError("trainer.evaluate_split needs a dataset; a datamodule has its val_dataloader.")
        for name in ("batch_size", "global_batch_size"):
            if getattr(conf, name) is not None:
                raise ConfigError(f"trainer.{name} needs a dataset; a datamodule creates its own batches.")
        return
    info = job.dataset.info
    if info.dtype == "object":
        raise ConfigError(
            f"the lightning trainer needs numbers, but the rows of {info.name} are text.",
            "Use a trainer.datamodule that tokenizes, or trainer=transformers",
        )
    if info.memory == "stream":
        raise ConfigError(
            "the lightning trainer keeps its rows in memory.",
            "Set dataset.memory=resident, or use trainer.datamodule.",
        )
    check_split(conf.evaluate_split, info)
    if conf.rows_per_step(workers) < workers:
        raise ConfigError(
            f"trainer.global_batch_size={conf.global_batch_size} is less than one row for each of {workers} workers."
        )
    _check_interval(conf, conf.steps_per_epoch(info, workers))
    split = evaluated_split(conf.evaluate_split, info)
    if split is not None and info.num_rows[split] < workers:
        raise ConfigError(f"the split '{split}' has fewer rows than there are workers ({workers}).")


def _check_interval(conf: Conf, num_batches: int) -> None:
    """Refuse evaluations after more batches than an epoch has: Lightning restarts its count in each epoch."""
    given = conf.trainer_args
    every, limit = given.get("val_check_interval"), given.get("limit_train_batches")
    if limit is not None:
        num_batches = min(num_batches, limit) if isinstance(limit, int) else int(num_batches * limit)
    if isinstance(every, int) and every > num_batches and given.get("check_val_every_n_epoch", 1) is not None:
        raise ConfigError(
            f"trainer.trainer_args.val_check_interval={every} is more than the {num_batches} batches of an epoch.",
            to_try(
                f"++trainer.trainer_args.val_check_interval={num_batches}",
                "or count the batches of all epochs: ++trainer.trainer_args.check_val_every_n_epoch=null",
            ),
        )
