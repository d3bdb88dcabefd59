"""The ranks as they write a checkpoint while training continues."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


class CheckpointProcessGroup:
    """All ranks, in a separate process group, so that their exchange never mixes with that of training.

    The exchange goes through main memory, where the copies are.
    """

    def __init__(self) -> None:
        self.group: Any = dist.new_group(backend="gloo")

    def gather(self, value: Any) -> list[Any]:
        """Return what each rank has given, by rank."""
        found = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(found, value, group=self.group)
        return found

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group(self.group)
