"""The moving average of the weights: ``trainer.ema_decay``."""

from __future__ import annotations

from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def make_ema(model: nn.Module, decay: float | None) -> AveragedModel | None:
    """Return a moving average of the model's weights and buffers, or None."""
    if decay is None:
        return None
    average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    return AveragedModel(model, multi_avg_fn=average, use_buffers=True)
