"""Large pages of memory for large tensors: the kernel hands them out in a part of the time."""

from __future__ import annotations

import os
from pathlib import Path

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Who gets them: all, none, or who asks (``madvise``), as NumPy does."""
OF_TORCH = "THP_MEM_ALLOC_ENABLE"
"""Has torch ask for them where it allocates 2 MB or more; it reads that when it is imported."""


def use_huge_pages() -> None:
    """Let torch, in this process and those that it starts, ask for large pages; a user's own value wins."""
    try:
        asked = "[madvise]" in ENABLED.read_text()
    except OSError:  # no Linux, or one without them
        return
    if asked:
        os.environ.setdefault(OF_TORCH, "1")
