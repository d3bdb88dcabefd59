"""Models that ``ray.train.lightning.RayTrainReportCallback`` reports from a train loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from rtrain.errors import CheckpointError
from rtrain.trainers.loops.custom.predictors.reported import Columns, ReportedModel, array_of
from rtrain.trainers.loops.tasks import CLASSES

BATCH_ROWS = 1024


def load_model(model: ReportedModel) -> Callable[[Columns], np.ndarray]:
    """Return ``forward`` of a LightningModule on ``x``: probabilities of the logits that it gives of classes.

    Raises:
        CheckpointError: The class of the module is not named, or needs arguments that were not saved.
    """
    if model.named is None:
        raise CheckpointError(
            f"{model.file} has the weights of a LightningModule, but not its class.",
            "Set the class: trainer.predictor=my_module:Net",
        )
    try:
        module = model.named.load_from_checkpoint(model.file, map_location=model.device, weights_only=False)
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"{model.named.__name__}.load_from_checkpoint({model.file.name}) failed: {error}",
            "Call save_hyperparameters() in __init__, or set a function that builds the module: "
            "trainer.predictor=my_module:load",
        ) from error
    module.to(model.device).eval()

    @torch.no_grad()
    def predict(columns: Columns) -> np.ndarray:
        x = torch.as_tensor(array_of(columns), device=model.device)
        x = x.to(module.dtype) if x.is_floating_point() else x
        parts = [module(x[at : at + BATCH_ROWS]) for at in range(0, max(1, len(x)), BATCH_ROWS)]
        output = torch.cat(parts).float().cpu()
        if model.info.task not in CLASSES:
            return np.asarray(output)
        return np.asarray(output.sigmoid() if output.shape[-1] == 1 else output.softmax(-1))

    return predict
