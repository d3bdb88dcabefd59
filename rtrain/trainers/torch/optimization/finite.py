"""Whether gradients and weights are finite numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

BATCH_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
"""Buffers of batch normalisation, which training itself never reads."""


def are_finite(tensors: Iterable[Tensor]) -> bool:
    """Return whether this rank's parts of all tensors are finite; waits for the device once."""
    return not non_finite({str(place): tensor for place, tensor in enumerate(tensors)})


@torch.no_grad()
def non_finite(tensors: Mapping[str, Tensor]) -> set[str]:
    """Return the names of the tensors of which this rank's part holds a NaN or an infinite number."""
    parts = {name: part for name, part in ((name, _part(one)) for name, one in tensors.items()) if part is not None}
    if not parts:
        return set()
    # One read of each tensor, and no copy: the largest absolute value is NaN if any of them is.
    largest = [torch.linalg.vector_norm(part, math.inf) for part in parts.values()]
    device = largest[0].device
    finite = torch.stack([one.to(device, torch.float64) for one in largest]).isfinite().tolist()
    return {name for name, good in zip(parts, finite, strict=True) if not good}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and batch statistics of a model by name; other buffers may hold infinite numbers."""
    return dict(_weights_of(model))


def _weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from ((name, one) for name, one in model.named_buffers() if name.rpartition(".")[2] in BATCH_STATISTICS)


def _part(tensor: Tensor) -> Tensor | None:
    """Return the numbers of a tensor that this rank has; None if there are none, or none that can be infinite."""
    # ZeRO 3 keeps its part of a weight next to an empty tensor.
    part = tensor.to_local() if hasattr(tensor, "to_local") else getattr(tensor, "ds_tensor", tensor)
    part = part._values() if part.is_sparse else part
    is_number = (part.is_floating_point() or part.is_complex()) and part.element_size() > 1
    return part.detach() if is_number and part.numel() else None
