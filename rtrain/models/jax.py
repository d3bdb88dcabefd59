"""Models of flax.linen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn


class MLP(nn.Module):
    """A multilayer perceptron of flattened rows, with ReLU."""

    num_classes: int
    """Outputs; 1 for a regression."""
    hidden: Sequence[int] = (128, 128)
    """Width of each hidden layer."""
    dropout: float = 0.0
    """Share of activations that are zeroed while training."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        """Return (rows, num_classes) logits of (rows, ...)."""
        _check_share(self.dropout)
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
            x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return nn.Dense(self.num_classes)(x)


class CNN(nn.Module):
    """Blocks of a 3 x 3 convolution, ReLU and a maximum over 2 x 2 pixels, then two dense layers; for small images."""

    num_classes: int
    """Outputs; 1 for a regression."""
    channels: Sequence[int] = (32, 64)
    """Channels of each block; each one halves the image."""
    width: int = 128
    """Width of the dense layer."""
    dropout: float = 0.0
    """Share of activations before the last layer that are zeroed while training."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        """Return (rows, num_classes) logits of (rows, height, width, channels)."""
        _check_share(self.dropout)
        for channels in self.channels:
            x = nn.relu(nn.Conv(channels, (3, 3))(x))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(self.width)(x.reshape(x.shape[0], -1)))
        x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return nn.Dense(self.num_classes)(x)


def _check_share(dropout: float) -> None:
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, not {dropout}")
