"""Everything that training changes, and how it goes into a checkpoint and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from rtrain.trainers.torch.world import World

WEIGHTS, AVERAGED, TRAINING = "model.safetensors", "model_ema.safetensors", "training.pt"
SHARDS = "shards"
"""Folder of the weights where each rank writes a part of them."""
BATCH_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
"""Buffers of batch normalisation, which training itself never reads."""


@dataclass
class Progress:
    """Where training is; the same on every rank."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Epochs done."""
    step_in_epoch: int = 0
    """Steps done of the epoch that is under way."""
    rows_per_step: int = 0
    """Rows of all ranks per step."""
    seconds: float = 0.0
    """Time that the run has taken."""
    best: float | None = None
    """Best value of the monitor so far."""
    early_best: float | None = None
    bad_evaluations: int = 0
    """Evaluations in a row without improvement."""
    evaluated_step: int = -1
    """Step of the last evaluation."""
    loss_sum: float = 0.0
    """Sum of all row losses in the epoch under way, over all ranks."""
    rows: int = 0
    """Rows behind ``loss_sum``."""


@dataclass
class TrainState:
    """Model, optimizer and what belongs to them."""

    model: nn.Module
    """The bare module, without the wrapper that exchanges gradients."""
    optimizer: Optimizer
    scheduler: LRScheduler | None
    scaler: torch.amp.GradScaler
    ema: AveragedModel | None
    progress: Progress = field(default_factory=Progress)
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest value of each metric."""

    def evaluated_model(self) -> nn.Module:
        """Return the module that evaluations use: averaged weights if there are any."""
        return self.model if self.ema is None else self.ema.module

    def share_buffers(self, world: World) -> None:
        """Give every rank the buffers of rank 0: batch statistics differ between ranks while they train."""
        world.copy_from_first(self.model.buffers())
        if self.ema is not None:
            world.copy_from_first(self.ema.module.buffers())

    def save(self, folder: Path) -> None:
        """Write weights and training state into ``folder``."""
        save_model(self.model, str(folder / WEIGHTS))
        if self.ema is not None:
            save_model(self.ema.module, str(folder / AVERAGED))
        torch.save({"optimizer": self.optimizer.state_dict(), **self.rest()}, folder / TRAINING)

    def rest(self) -> dict[str, Any]:
        """Return what there is beside weights and optimizer, the same on every rank."""
        return {
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "ema_updates": None if self.ema is None else self.ema.n_averaged,
            "progress": asdict(self.progress),
            "metrics": self.metrics,
        }

    def load(self, folder: Path, world: World) -> None:
        """Take everything from ``folder``; executes nothing that is in it."""
        load_model(self.model, str(folder / WEIGHTS), device=str(world.device))
        stored = torch.load(folder / TRAINING, map_location=world.device, weights_only=True)
        self.optimizer.load_state_dict(stored["optimizer"])
        if self.ema is not None and (folder / AVERAGED).exists():
            load_model(self.ema.module, str(folder / AVERAGED), device=str(world.device))
            self.ema.n_averaged = stored["ema_updates"]
        self.take_rest(stored)

    def take_rest(self, stored: Mapping[str, Any]) -> None:
        """Take back what ``rest`` gave."""
        if self.scheduler is not None and stored["scheduler"] is not None:
            self.scheduler.load_state_dict(stored["scheduler"])
        if stored["scaler"]:
            self.scaler.load_state_dict(stored["scaler"])
        self.progress = Progress(**stored["progress"])
        self.metrics = dict(stored["metrics"])

    def expect_rows_per_step(self, rows_per_step: int) -> None:
        """Find the place in the epoch again if steps have another size than before: with more workers, say.

        The order of the rows stays; less than one step of them comes twice.
        """
        progress = self.progress
        if progress.step_in_epoch > 0 and progress.rows_per_step != rows_per_step:
            progress.step_in_epoch = progress.rows // rows_per_step
        progress.rows_per_step = rows_per_step


def seed_step(seed: int, rank: int, step: int, device: torch.device) -> None:
    """Make the random numbers of a step depend on nothing but ``seed``, ``rank`` and ``step``.

    A resumed run thus draws the same dropout as one that was never interrupted, whatever else drew numbers meanwhile.
    The three are mixed as in SplitMix64 (Steele, Lea & Flood, 2014): torch looks at the low 32 bits of a seed only.
    """
    mixed = (seed << 20) + rank
    for part in (step, 0):
        mixed = (mixed + part + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    # torch.manual_seed asks every kind of device, which takes longer than a small step.
    torch.default_generator.manual_seed(mixed)
    if device.type == "cuda":
        torch.cuda.manual_seed(mixed)


def make_ema(model: nn.Module, decay: float | None) -> AveragedModel | None:
    """Return a moving average of the model's weights and buffers, or None."""
    if decay is None:
        return None
    average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    return AveragedModel(model, multi_avg_fn=average, use_buffers=True)


def has_only_batch_statistics(model: nn.Module) -> bool:
    """Tell whether training never reads a buffer of the model, so that ranks need not exchange them at every step."""
    return all(name.rpartition(".")[2] in BATCH_STATISTICS for name, _ in model.named_buffers())
