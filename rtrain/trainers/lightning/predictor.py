"""Predict with the checkpoint of a lightning run, from its files alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.lightning.services import WEIGHTS
from rtrain.trainers.loops.auto import fill_from_dataset
from rtrain.trainers.loops.epochs.predictor import BatchPredictor
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.torch.inputs.standardize import Standardizer
from rtrain.trainers.trained import LoadedCheckpoint


class Predictor(BatchPredictor):
    """The module's ``forward``, which returns logits, or logarithms of probabilities."""

    def __init__(self, module: Any, info: DatasetInfo, device: torch.device) -> None:
        super().__init__(info)
        self.model, self._device = module.to(device).eval(), device
        self._standardized = Standardizer(info, device)

    def check(self, x: np.ndarray) -> None:
        """Check the shape of rows; those of a datamodule may be anything."""
        if self.info.input_shape:
            super().check(x)

    @torch.no_grad()
    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Compute some rows."""
        output = self.model(self._standardized(torch.tensor(x, device=self._device))).float()
        if self.info.task in CLASSES:
            return np.asarray(output.softmax(-1).cpu())
        return np.asarray((output.squeeze(-1) if output.ndim == 2 else output).cpu())


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Return what predicts with the module of a checkpoint.

    Raises:
        CheckpointError: The weights are not there, or don't fit the module.
    """
    return Predictor(load_module(trained), trained.info, torch.device(device))


def load_module(trained: LoadedCheckpoint) -> Any:
    """Build the module with the weights of a checkpoint; with a datamodule, nothing is filled in.

    Raises:
        CheckpointError: The weights are not there, or don't fit the module.
    """
    node = trained.conf.module
    if trained.conf.datamodule is None:
        node = fill_from_dataset(node, trained.info, "trainer.module")
    module = trained.builder.build(node, "trainer.module")
    try:
        module.load_state_dict(load_file(trained.folder / WEIGHTS, device="cpu"))
    except (OSError, RuntimeError) as error:
        raise CheckpointError(
            f"{trained.folder} does not contain the weights of {node['_target_']}: {error}"
        ) from error
    return module
