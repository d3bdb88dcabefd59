"""When a worker last got further."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class Life:
    """When a worker last got further; a loop that never tells is not watched."""

    sign_at: float | None = None
    """Monotonic time; None before the first step."""
    step: int = 0

    def sign(self, step: int | None = None) -> None:
        """Note that the worker gets on, with a step or, between steps, with something else."""
        if step is not None:
            self.step = step
        if step is not None or self.sign_at is not None:
            self.sign_at = time.monotonic()

    def rest(self) -> None:
        """Note that there are no steps any more: what comes now may take its time."""
        self.sign_at = None
