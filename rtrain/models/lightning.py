"""A LightningModule to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn import functional


class Classifier(pl.LightningModule):
    """A perceptron with ReLU between its layers, trained by Adam to tell classes apart.

    Args:
        in_features: Numbers per row; images are made flat.
        num_classes: Classes.
        hidden: Width of each hidden layer.
        lr: Learning rate.

    Raises:
        ValueError: A width is below 1.
    """

    def __init__(self, in_features: int, num_classes: int, hidden: Sequence[int] = (128,), lr: float = 1e-3) -> None:
        super().__init__()
        if any(size < 1 for size in hidden):
            raise ValueError(f"hidden must contain widths of 1 or more, not {list(hidden)}")
        widths = [in_features, *hidden]
        layers = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], num_classes))
        self.lr = lr

    def forward(self, x: Tensor) -> Tensor:
        """Return (rows, num_classes) logits."""
        logits: Tensor = self.layers(x)
        return logits

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the cross entropy of a batch (x, y)."""
        x, y = batch
        return functional.cross_entropy(self(x), y)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Log loss and accuracy, over all rows of all workers."""
        x, y = batch
        logits = self(x)
        self.log("val_loss", functional.cross_entropy(logits, y), sync_dist=True)
        self.log("val_accuracy", (logits.argmax(1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=self.lr)
