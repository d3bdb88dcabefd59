"""A multilayer perceptron for tables and small images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


class MLP(nn.Module):
    """Linear layers with an activation, and dropout, between them.

    Args:
        in_features: Numbers per row; inputs of any shape are flattened to it.
        num_classes: Outputs per row: classes, or targets of a regression.
        hidden: Width of each hidden layer.
        activation: ``relu``, ``gelu``, ``silu`` or ``tanh``.
        dropout: Share of activations that are zeroed while training.

    Raises:
        ValueError: ``activation`` is unknown, or a width is below 1.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        hidden: Sequence[int] = (128, 128),
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
        if any(size < 1 for size in hidden):
            raise ValueError(f"hidden must contain widths of 1 or more, not {list(hidden)}")
        layers: list[nn.Module] = []
        width = in_features
        for size in hidden:
            layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
            width = size
        self.layers = nn.Sequential(*layers, nn.Linear(width, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, ...) to (rows, num_classes)."""
        out: Tensor = self.layers(x.flatten(1))
        return out
