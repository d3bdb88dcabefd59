"""Models that need more memory than any GPU has."""

import flax.linen
import jax.numpy
import torch

TOO_MANY_BYTES = 2**50


class TooLarge(torch.nn.Linear):
    """Ask for a petabyte in the forward pass, where the rows are."""

    def __init__(self, num_classes):
        super().__init__(64, num_classes)

    def forward(self, x):
        torch.empty(TOO_MANY_BYTES, dtype=torch.uint8, device=x.device)
        return super().forward(x.flatten(1))


class TooLargeOfJax(flax.linen.Module):
    """The same in JAX, with 4 terabytes: every number of a product with 2**40 of them is used twice."""

    num_classes: int

    @flax.linen.compact
    def __call__(self, x, train=False):
        x = x.reshape(len(x), -1)
        rows = jax.numpy.tile(x, (2**20 // len(x), 1))
        products = rows @ rows.T
        return flax.linen.Dense(self.num_classes)(x) + (products - products.mean()).max()
