"""Everything that training changes, and how it goes into a checkpoint and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.torch.checkpoint.optimizer_state import checked_state
from rtrain.trainers.torch.checkpoint.staging import Stager, save_tensors
from rtrain.trainers.torch.optimization.finite import BATCH_STATISTICS
from rtrain.trainers.torch.optimization.schedule import each_schedule
from rtrain.trainers.torch.ranks import TorchRanks

WEIGHTS, AVERAGED, TRAINING = "model.safetensors", "model_ema.safetensors", "training.pt"
SHARDS = "shards"
"""Folder of the weights where each rank writes a part of them."""


@dataclass
class TrainState:
    """Model, optimizer and what belongs to them."""

    model: nn.Module
    """The bare module, without the wrapper that exchanges gradients."""
    optimizer: Optimizer
    scheduler: LRScheduler | None
    scaler: torch.amp.GradScaler
    ema: AveragedModel | None
    stager: Stager = field(default_factory=Stager)
    """Room for a snapshot."""

    def evaluated_model(self) -> nn.Module:
        """Return the module that evaluations use: averaged weights if there are any."""
        return self.model if self.ema is None else self.ema.module

    def share_buffers(self, ranks: TorchRanks) -> None:
        """Give every rank the buffers of rank 0: batch statistics differ between ranks while they train."""
        ranks.copy_from_first(self.model.buffers())
        if self.ema is not None:
            ranks.copy_from_first(self.ema.module.buffers())

    def snapshot(self) -> Writer:
        """Copy weights and training state, and return what writes them into a folder."""
        ema = None if self.ema is None else self.ema.module.state_dict()
        training = {"optimizer": self.optimizer.state_dict(), **self.rest()}
        weights, averaged, training = self.stager.take((self.model.state_dict(), ema, training))

        def write(folder: Path) -> None:
            save_tensors(weights, folder / WEIGHTS)
            if averaged is not None:
                save_tensors(averaged, folder / AVERAGED)
            torch.save(training, folder / TRAINING)

        return write

    def rest(self) -> dict[str, Any]:
        """Return everything other than weights and optimizer, the same on every rank."""
        return {
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "ema_updates": None if self.ema is None else self.ema.n_averaged,
        }

    def load(self, folder: Path, ranks: TorchRanks) -> None:
        """Take everything from ``folder``; executes nothing that is in it."""
        load_weights(self.model, folder / WEIGHTS, ranks.device)
        # The optimizer sends each tensor where it needs it; numbers of steps stay in main memory.
        stored = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
        self.optimizer.load_state_dict(checked_state(self.optimizer, stored["optimizer"]))
        if self.ema is not None and (folder / AVERAGED).exists():
            load_weights(self.ema.module, folder / AVERAGED, ranks.device)
            self.ema.n_averaged = stored["ema_updates"]
        self.take_rest(stored)

    def change_optimizer(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Train on by the optimizer's arguments of now, where those that a loaded checkpoint was made with differ.

        Args:
            before: ``trainer.optimizer`` as it was then.
            now: As it is.
        """
        for key in [key for key in now if key in before and before[key] != now[key]]:
            for place, group in enumerate(self.optimizer.param_groups):
                if key == "lr":
                    # A schedule's share of the rate stays.
                    group["lr"] = group["lr"] * now["lr"] / before["lr"] if before["lr"] else now["lr"]
                    if "initial_lr" in group:
                        group["initial_lr"] = now["lr"]
                    for schedule in each_schedule(self.scheduler):
                        if hasattr(schedule, "base_lrs"):
                            schedule.base_lrs[place] = now["lr"]
                elif key in group:
                    group[key] = tuple(now[key]) if isinstance(now[key], list) else now[key]

    def take_rest(self, stored: Mapping[str, Any]) -> None:
        """Take back what ``rest`` gave."""
        if self.scheduler is not None and stored["scheduler"] is not None:
            self.scheduler.load_state_dict(stored["scheduler"])
        if stored["scaler"]:
            self.scaler.load_state_dict(stored["scaler"])


def whole_weights(folder: Path) -> Path | None:
    """Return the file of a checkpoint's whole weights, averaged ones if there are any; None if it has only shards."""
    for name in (AVERAGED, WEIGHTS):
        if (folder / name).exists():
            return folder / name
    return None if (folder / SHARDS).is_dir() else folder / WEIGHTS


def load_weights(model: nn.Module, path: Path, device: torch.device) -> None:
    """Fill a model with the weights in a file.

    Raises:
        CheckpointError: The file can't be read, or holds those of another model.
    """
    try:
        load_model(model, str(path), device=str(device))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    except RuntimeError as error:
        raise CheckpointError(f"{path} does not contain the weights of this model: {error}") from error


def has_only_batch_statistics(model: nn.Module) -> bool:
    """Return whether training never reads a buffer of the model, so that ranks need not exchange them at every step."""
    return all(name.rpartition(".")[2] in BATCH_STATISTICS for name, _ in model.named_buffers())
