"""Models with batch statistics, for the tests of the jax trainer."""

from flax import linen, nnx


class Normalized(linen.Module):
    """Has batch statistics."""

    num_classes: int

    @linen.compact
    def __call__(self, x, train):
        x = linen.BatchNorm(use_running_average=not train)(x.reshape(len(x), -1))
        return linen.Dense(self.num_classes)(x)


class Nnx(nnx.Module):
    """The same in nnx, with dropout."""

    def __init__(self, in_features, num_classes, rngs, rate=0.5):
        self.norm = nnx.BatchNorm(in_features, rngs=rngs)
        self.dropout = nnx.Dropout(rate, rngs=rngs)
        self.dense = nnx.Linear(in_features, num_classes, rngs=rngs)

    def __call__(self, x):
        return self.dense(self.dropout(self.norm(x.reshape(len(x), -1))))


LINEN = {"_target_": f"{__name__}.Normalized", "num_classes": "auto"}
NNX = {"_target_": f"{__name__}.Nnx", "in_features": "auto", "num_classes": "auto"}
