"""Everything that training changes, and how it goes into a checkpoint and back."""

from __future__ import annotations

import json
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

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.torch.world import World

WEIGHTS, AVERAGED, TRAINING, DESCRIPTION = "model.safetensors", "model_ema.safetensors", "training.pt", "model.json"


@dataclass
class Progress:
    """Where training is."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Epochs done."""
    step_in_epoch: int = 0
    """Steps done of the epoch that is under way."""
    best: float | None = None
    """Best value of the monitor so far."""
    early_best: float | None = None
    bad_evaluations: int = 0
    """Evaluations in a row without improvement."""
    loss_sum: float = 0.0
    """Sum of this rank's row losses in the epoch under way."""
    rows: int = 0
    """Rows behind ``loss_sum``."""


@dataclass
class TrainState:
    """Model, optimizer and what belongs to them."""

    model: nn.Module
    """The bare module: neither wrapped for distribution nor compiled."""
    optimizer: Optimizer
    scheduler: LRScheduler | None
    scaler: torch.amp.GradScaler
    ema: AveragedModel | None
    progress: Progress = field(default_factory=Progress)

    def evaluated_model(self) -> nn.Module:
        """Return the module that evaluations use: averaged weights if there are any."""
        return self.model if self.ema is None else self.ema.module

    def save(self, folder: Path, random_states: list[Any], description: Mapping[str, Any]) -> None:
        """Write weights, training state and description into ``folder``."""
        save_model(self.model, str(folder / WEIGHTS))
        if self.ema is not None:
            save_model(self.ema.module, str(folder / AVERAGED))
        torch.save(
            {
                "optimizer": self.optimizer.state_dict(),
                "scheduler": None if self.scheduler is None else _plain(self.scheduler.state_dict()),
                "scaler": self.scaler.state_dict(),
                "ema_updates": None if self.ema is None else self.ema.n_averaged,
                "progress": asdict(self.progress),
                "random": random_states,
            },
            folder / TRAINING,
        )
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=2), encoding="utf-8")

    def load(self, folder: Path, world: World) -> None:
        """Take everything from ``folder``; executes nothing that is in it."""
        load_model(self.model, str(folder / WEIGHTS), device=str(world.device))
        stored = torch.load(folder / TRAINING, map_location=world.device, weights_only=True)
        self.optimizer.load_state_dict(stored["optimizer"])
        if self.scheduler is not None and stored["scheduler"] is not None:
            self.scheduler.load_state_dict(stored["scheduler"])
        if stored["scaler"]:
            self.scaler.load_state_dict(stored["scaler"])
        if self.ema is not None and (folder / AVERAGED).exists():
            load_model(self.ema.module, str(folder / AVERAGED), device=str(world.device))
            self.ema.n_averaged = stored["ema_updates"]
        self.progress = Progress(**stored["progress"])
        if len(stored["random"]) == world.size:
            restore_random(stored["random"][world.rank])


def random_state() -> dict[str, Any]:
    """Return the state of torch's random generators of this rank."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_random(state: Mapping[str, Any]) -> None:
    """Continue the random numbers where ``random_state`` left them."""
    torch.set_rng_state(state["cpu"].cpu())
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu())


def make_ema(model: nn.Module, decay: float | None) -> AveragedModel | None:
    """Return a moving average of the model's weights and buffers, or None."""
    if decay is None:
        return None
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)


def describe_model(node: Mapping[str, Any], info: DatasetInfo, averaged: bool) -> dict[str, Any]:
    """Return what a predictor needs to build the model again: its node without ``auto``, and the dataset."""
    return {"model": dict(node), "weights": AVERAGED if averaged else WEIGHTS, "dataset": asdict(info)}


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what only a pickle could hold: a schedule's functions are built again from the config."""
    return {key: value for key, value in state.items() if not callable(value) and key != "lr_lambdas"}
