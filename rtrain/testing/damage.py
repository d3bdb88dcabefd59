"""Checkpoints with files that are not what they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rtrain.runs.checkpoints import RECORD_NAME
from rtrain.runs.filesystem.files import sha256_of


class Calls:
    """Is pickled as a call of ``function``, which whoever unpickles it makes.

    Args:
        function: What is called.
        args: Its arguments.
    """

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call."""
        return self.call


def change_byte(path: Path) -> None:
    """Flip a bit in the middle of a file, as a disk may do: its size stays."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace_file(checkpoint: Path, name: str, content: bytes) -> None:
    """Put other bytes in place of a file, and list them: nothing but what is in them tells."""
    (checkpoint / name).write_bytes(content)
    record = json.loads((checkpoint / RECORD_NAME).read_text())
    record["files"][name] = {"size_bytes": len(content), "sha256": sha256_of(checkpoint / name)}
    (checkpoint / RECORD_NAME).write_text(json.dumps(record))
