"""Schedules of the learning rate that configs can name by ``_target_``."""

from __future__ import annotations

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def warmup_cosine(
    optimizer: Optimizer, num_training_steps: int, num_warmup_steps: int = 0, final_share: float = 0.0
) -> LambdaLR:
    """Raise the rate from near 0 to the optimizer's in equal steps, then lower it along half a cosine.

    The cosine is that of Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016), without
    restarts.

    Args:
        optimizer: Its rate is the highest one.
        num_training_steps: Steps of the schedule in the whole run.
        num_warmup_steps: Steps on the way up.
        final_share: Part of the optimizer's rate that is left at the end.
    """

    def share(step: int) -> float:
        if step < num_warmup_steps:
            return (step + 1) / (num_warmup_steps + 1)
        done = (step - num_warmup_steps) / max(1, num_training_steps - num_warmup_steps)
        return final_share + (1 - final_share) * (1 + math.cos(math.pi * min(1.0, done))) / 2

    return LambdaLR(optimizer, share)
