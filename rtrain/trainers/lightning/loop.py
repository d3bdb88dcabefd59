"""Train a LightningModule by Lightning's own Trainer, with rtrain's rows, reports, checkpoints and stops."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.precision import DoublePrecision, HalfPrecision
from lightning.pytorch.utilities.model_helpers import is_overridden
from safetensors.torch import load_file

from rtrain.config.targets.builder import Builder
from rtrain.trainers.base import LENGTHS
from rtrain.trainers.lightning.checkpoint.untrusted import StrangersNumbers
from rtrain.trainers.lightning.config import Conf
from rtrain.trainers.lightning.inputs import EvalBatches, OurData, SharedData, SplitRows, TrainBatches, loader_of
from rtrain.trainers.lightning.quiet import quiet
from rtrain.trainers.lightning.services import CHECKPOINT, WEIGHTS, Services, StoppedError
from rtrain.trainers.loops.auto import evaluated_split, fill_from_dataset
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.torch.optimization.unused import unused_named
from rtrain.trainers.torch.process_settings import training_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    conf: Conf = worker.conf
    with training_settings(worker, deterministic=None), quiet():
        ranks = TorchRanks.of(worker)
        module, folder, weights = build_module(worker), worker.resume_dir(), worker.init_dir()
        progress = EpochProgress() if folder is None else EpochProgress.load(folder)
        make_data = _our_data if conf.datamodule is None else _shared_data
        data = make_data(worker, ranks, progress, validates=_validates(module, conf))
        services = Services(worker, ranks, data, progress)
        ended = services.control.over_before()
        if ended and ended not in LENGTHS:
            services.control.describe_end(ended)
            return
        trainer = make_trainer(worker, services)
        if isinstance(trainer.precision_plugin, DoublePrecision | HalfPrecision):
            # Lightning would do it after it has loaded the weights, whose last digits would be gone.
            trainer.precision_plugin.convert_module(module)
        if weights is not None:
            module.load_state_dict(load_file(weights / WEIGHTS, device="cpu"))
        checkpoint = None if folder is None else str(folder / CHECKPOINT)
        if not worker.resumes_own:
            trainer.strategy.checkpoint_io = StrangersNumbers(trainer)
        # Only plain data and tensors are read from the checkpoint: nothing in it is executed.
        with contextlib.suppress(StoppedError), unused_named(module), services.control.ending():
            trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=None if folder is None else True)


def build_module(worker: Worker) -> Any:
    """Return the user's module, with what the dataset knows filled in."""
    node = worker.conf.module
    if worker.dataset is not None:
        node = fill_from_dataset(node, worker.dataset.info, "trainer.module")
    return worker.builder.build(node, "trainer.module")


def _validates(module: pl.LightningModule, conf: Conf) -> bool:
    """Return whether Lightning validates the module where there is something to validate it on."""
    return is_overridden("validation_step", module) and conf.trainer_args.get("limit_val_batches") != 0


def _our_data(worker: Worker, ranks: TorchRanks, progress: EpochProgress, *, validates: bool) -> OurData:
    conf, info, splits = worker.conf, worker.data.info, worker.data.splits
    rows = SplitRows(splits["train"], info)
    batches = TrainBatches(len(rows), conf.rows_per_step(ranks.size), ranks, worker.run.seed, shuffle=True, drop=False)
    batches.begin(progress.epoch, progress.step_in_epoch, progress.rows)
    num_own_rows, evaluated = {"train": batches.num_own_rows()}, None
    split = evaluated_split(conf.evaluate_split, info) if validates else None
    if split is not None:
        held = SplitRows(splits[split], info)
        parts = EvalBatches(len(held), conf.eval_batch_size, ranks)
        evaluated, num_own_rows[split] = loader_of(held, parts), parts.num_own_rows
    return OurData(loader_of(rows, batches), evaluated, batches, num_own_rows, split)


def _shared_data(worker: Worker, ranks: TorchRanks, progress: EpochProgress, *, validates: bool) -> SharedData:
    inner = worker.builder.build(worker.conf.datamodule, "trainer.datamodule")
    return SharedData(inner, ranks, worker.run.seed, progress, validates=validates)


def make_trainer(worker: Worker, services: Services) -> pl.Trainer:
    """Return Lightning's Trainer, on this rank's device and with our services last among its callbacks."""
    conf, given = worker.conf, _built(worker.conf.trainer_args, worker.builder)
    plugins = _as_list(given.pop("plugins", None))
    strategy: Any = "auto"
    if worker.world_size > 1:
        from ray.train.lightning import RayLightningEnvironment

        from rtrain.trainers.lightning.strategy import SharedDDP

        plugins = [*plugins, RayLightningEnvironment()]
        strategy = SharedDDP(find_unused_parameters=conf.find_unused_parameters)
    # One batch is enough to know the names of the metrics.
    usual = {
        "logger": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": int(services.watched.of_validation),
    }
    trainer = pl.Trainer(
        accelerator="gpu" if worker.use_gpu else "cpu",
        devices=1,
        strategy=strategy,
        plugins=plugins or None,
        callbacks=[*_as_list(given.pop("callbacks", None)), services.losses, services],
        max_epochs=conf.max_epochs or -1,
        max_steps=conf.max_steps or -1,
        default_root_dir=str(worker.run_dir),
        use_distributed_sampler=False,
        enable_progress_bar=False,
        log_every_n_steps=worker.run.log_every_steps,
        **{**usual, **given},
    )
    # With a limit on steps, Lightning would end the epoch of a checkpoint once more, and count it twice.
    loop: Any = trainer.fit_loop
    loop._iteration_based_training = lambda: False
    return trainer


def _built(given: Mapping[str, Any], builder: Builder) -> dict[str, Any]:
    """Return the Trainer's arguments with what they name by ``_target_``."""

    def one(value: Any, where: str) -> Any:
        if isinstance(value, list):
            return [one(inner, f"{where}.{number}") for number, inner in enumerate(value)]
        return builder.build(value, where) if isinstance(value, Mapping) and "_target_" in value else value

    return {name: one(value, f"trainer.trainer_args.{name}") for name, value in given.items()}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
