"""Predict with the checkpoint of a torch run, from its files alone."""

from __future__ import annotations

import numpy as np
import torch
from safetensors.torch import load_model
from torch import Tensor, nn

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.loops.epochs.predictor import BatchPredictor
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.torch.build import build_model
from rtrain.trainers.torch.checkpoint.state import AVERAGED, SHARDS, WEIGHTS
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.evaluation import autocast
from rtrain.trainers.torch.inputs.loader import Inputs
from rtrain.trainers.torch.inputs.row_transform import RowTransform
from rtrain.trainers.torch.inputs.standardize import as_tensor
from rtrain.trainers.torch.inputs.transforms import transform_of, transformed_info
from rtrain.trainers.torch.losses.of_tasks import fit_output
from rtrain.trainers.trained import LoadedCheckpoint


class Predictor(BatchPredictor):
    """A trained model.

    Args:
        model: The model with its trained weights.
        info: The dataset that it was trained on.
        precision: Precision of the forward pass, as in training.
        device: Where to predict.
        transform: What happens to each row before.
    """

    def __init__(
        self,
        model: nn.Module,
        info: DatasetInfo,
        precision: str,
        device: torch.device,
        transform: RowTransform | None = None,
    ) -> None:
        super().__init__(info)
        self.model = model.to(device).eval()
        self._inputs = Inputs(info, device, channels_last=False)
        self._precision, self._device, self._transform = precision, device, transform

    @torch.no_grad()
    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Compute some rows."""
        raw = x if x.dtype == object else as_tensor(np.ascontiguousarray(x))
        if self._transform is not None:
            raw = self._transform(raw, np.zeros(len(raw), np.uint32))
        rows = self._inputs.ready(self._inputs.place(raw))
        with autocast(self._precision, self._device):
            output: Tensor = self.model(rows)
        if self.info.task in CLASSES:
            # Of logarithms of probabilities, softmax gives the probabilities back.
            return np.asarray(output.float().softmax(-1).cpu())
        return np.asarray(fit_output(output.float(), torch.empty(len(x)))[0].cpu())


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Build the model of a checkpoint with its best weights: the moving average, if training kept one.

    Args:
        trained: A checkpoint of the torch trainer.
        device: Where to predict, e.g. ``cuda``.

    Raises:
        CheckpointError: The weights are not there, or don't fit the model.
    """
    conf: Conf = trained.conf
    model = build_model(conf.model, transformed_info(conf, trained.info, trained.builder), trained.builder)
    transform = transform_of(conf, False, trained.builder)
    weights = trained.folder / (WEIGHTS if conf.ema_decay is None else AVERAGED)
    if not weights.exists() and (trained.folder / SHARDS).is_dir():
        # Half a second of imports, for sharded checkpoints only.
        from rtrain.trainers.torch.checkpoint.shards import load_weights as load_shards

        load_shards(model, trained.folder, alone=True)
        return Predictor(model, trained.info, conf.precision, torch.device(device), transform)
    try:
        load_model(model, str(weights))
    except (OSError, RuntimeError) as error:
        target = conf.model["_target_"]
        raise CheckpointError(f"{trained.folder} does not contain the weights of {target}: {error}") from error
    return Predictor(model, trained.info, conf.precision, torch.device(device), transform)
