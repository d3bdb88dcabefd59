"""Lightning's DDP on Ray's workers, with each rank's mean loss weighed by its rows."""

from __future__ import annotations

from typing import Any

import torch
from ray.train.lightning import RayDDPStrategy

from rtrain.trainers.torch.optimization.frozen import Frozen


class SharedDDP(RayDDPStrategy):
    """Average gradients over rows: ranks have one row more or less in a step that can't be shared out evenly."""

    share: float = 1.0
    """Weight of this rank's mean loss in the step under way."""
    frozen: Frozen
    """What was frozen when the model was wrapped, and is not shared for that."""

    def configure_ddp(self) -> None:
        """Wrap the model, and remember what takes no part."""
        super().configure_ddp()
        assert self.lightning_module is not None
        self.frozen = Frozen(self.lightning_module)

    def backward(self, closure_loss: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the gradients of the weighed loss."""
        return super().backward(closure_loss * self.share, optimizer, *args, **kwargs)

    def on_exception(self, exception: BaseException) -> None:
        """Leave torch's error as it is: ``unused_named`` reads it. Lightning's own hint names another key."""

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        """Return the mean, not rounded: Lightning 2.6 cuts the mean of two odd numbers of rows to a whole number."""
        whole = isinstance(tensor, torch.Tensor) and not tensor.is_floating_point()
        return super().reduce(tensor.double() if whole else tensor, group, reduce_op)
