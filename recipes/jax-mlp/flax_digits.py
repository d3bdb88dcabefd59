"""A perceptron in Flax."""

import flax.linen as nn


class MLP(nn.Module):
    """Hidden layers with ReLU, then one logit per class."""

    hidden: tuple[int, ...]
    num_classes: int

    @nn.compact
    def __call__(self, x, train=False):
        """Return logits, (rows, classes), of pictures, (rows, height, width, channels)."""
        x = x.reshape(len(x), -1)
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.num_classes)(x)
