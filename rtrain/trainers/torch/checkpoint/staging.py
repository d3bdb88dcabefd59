"""Copies of tensors in main memory, so that they can be written while training changes the tensors themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor


class Stager:
    """Copies whole trees of tensors, each time into the same room: new memory costs more than the copying does."""

    def __init__(self) -> None:
        self._room: list[Tensor] = []

    def take(self, tree: Any) -> Any:
        """Return ``tree`` with a copy of each tensor, which is good until the next call.

        Args:
            tree: Mappings and sequences, at any depth, of tensors and of plain values. A tensor that occurs under
                two names is copied once.
        """
        copied: list[Tensor] = []
        seen: dict[Any, Tensor] = {}

        def copy(value: Any) -> Any:
            if isinstance(value, Tensor):
                key = (value.data_ptr(), value.shape, value.stride(), value.dtype) if value.numel() else len(copied)
                if key not in seen:
                    seen[key] = self._place(value, len(copied))
                    copied.append(seen[key])
                return seen[key]
            if isinstance(value, Mapping):
                return {name: copy(one) for name, one in value.items()}
            return type(value)(map(copy, value)) if type(value) in (list, tuple) else value

        found = copy(tree)
        self._room = copied
        if any(one.is_pinned() for one in copied):
            torch.cuda.synchronize()
        return found

    @torch.no_grad()
    def _place(self, value: Tensor, number: int) -> Tensor:
        room = self._room[number] if number < len(self._room) else None
        if room is None or room.shape != value.shape or room.dtype != value.dtype:
            room = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.device.type == "cuda")
        return room.copy_(value, non_blocking=True)


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors; of one with two names, the first name, as ``load_model`` of safetensors has it."""
    named: dict[int, str] = {}
    for name, tensor in tensors.items():
        named.setdefault(id(tensor), name)
    save_file({name: tensors[name] for name in named.values()}, str(path), metadata=metadata)
