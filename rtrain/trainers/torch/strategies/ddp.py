"""Every rank holds the whole model, and gradients are averaged."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from rtrain.trainers.torch.checkpoint.state import TrainState, has_only_batch_statistics
from rtrain.trainers.torch.strategies.base import Strategy


class DDP(Strategy):
    """``DistributedDataParallel``; a single rank trains the bare model."""

    def wrap(self, state: TrainState) -> nn.Module:
        """Return the model as training calls it: compiled, and exchanging gradients where there are several ranks."""
        self._wrapped = state.model
        if self.conf.compile:
            state.model.compile()
        if self.ranks.size > 1:
            self._wrapped = self._distribute(state.model)
        return self._wrapped

    def _distribute(self, model: nn.Module) -> DistributedDataParallel:
        # torch has renamed the argument; the old name warns.
        known = inspect.signature(DistributedDataParallel).parameters
        sync_buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        options: dict[str, Any] = {sync_buffers: not has_only_batch_statistics(model)}
        return DistributedDataParallel(
            model,
            device_ids=[self.ranks.device] if self.ranks.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            find_unused_parameters=self.conf.find_unused_parameters,
            **options,
        )

    def hold(self) -> AbstractContextManager[Any]:
        """Leave the exchange out; several ranks have one."""
        return self._wrapped.no_sync() if isinstance(self._wrapped, DistributedDataParallel) else nullcontext()


STRATEGY = DDP
