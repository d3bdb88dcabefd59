"""A network in Flax."""

import flax.linen as nn


class Net(nn.Module):
    """One layer."""

    num_classes: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.num_classes)(x.reshape((x.shape[0], -1)))
