"""The command line: parse, call one function, print. One file per command."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Run the ``rtrain`` command; ``--version`` is answered before anything is imported."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    from rtrain.terminal import open_streams

    open_streams()
    if sys.argv[1:] == ["--version"]:
        from rtrain import __version__

        print(f"rtrain {__version__}")
        return
    from rtrain.cli.app import run

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def _leave(signum: int, frame: FrameType | None) -> None:
    """End a process that has done nothing but import."""
    os._exit(INTERRUPTED)
