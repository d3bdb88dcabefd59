"""Lightning's DDP on Ray's workers, with each rank's mean loss weighed by its rows."""

from __future__ import annotations

from typing import Any

from ray.train.lightning import RayDDPStrategy


class SharedDDP(RayDDPStrategy):
    """Average gradients over rows: ranks have one row more or less in a step that can't be shared out evenly."""

    share: float = 1.0
    """Weight of this rank's mean loss in the step under way."""

    def backward(self, closure_loss: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the gradients of the weighed loss."""
        return super().backward(closure_loss * self.share, optimizer, *args, **kwargs)


def make_strategy(find_unused_parameters: bool) -> SharedDDP:
    """Return the strategy of several workers."""
    return SharedDDP(find_unused_parameters=find_unused_parameters)
