"""Ctrl-C while a command has nothing to save."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
AGAIN_SECONDS = 0.05


class Interrupt:
    """Ctrl-C where there is nothing to save: the first one ends the command, the next one the process."""

    def __init__(self) -> None:
        self.leaves = True
        """End the process: it has done nothing but import, or has only threads and exit handlers to wait for."""
        self.came = False

    def receive(self, signum: int, frame: FrameType | None) -> None:
        """Take the signal."""
        if self.leaves or self.came:
            os._exit(INTERRUPTED)
        self.came = True
        raise KeyboardInterrupt

    def renew(self, lost: sys.UnraisableHookArgs) -> None:
        """Have it come again a moment later where Python can't raise it: in callbacks, of the import system say."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
            return
        self.came = False
        main_thread = threading.main_thread().ident
        again = threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (main_thread, signal.SIGINT))
        again.daemon = True
        again.start()
