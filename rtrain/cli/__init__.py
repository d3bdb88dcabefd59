"""The command line: parse, call one function, print. One file per command."""

from __future__ import annotations

import atexit
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


def main() -> None:
    """Run the ``rtrain`` command; ``--version`` is answered before anything is imported."""
    interrupt = Interrupt()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt.receive)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # called last: Python would end by the signal
        sys.unraisablehook = interrupt.renew
    from rtrain.terminal import open_streams

    open_streams()
    if sys.argv[1:] == ["--version"]:
        from rtrain import __version__

        print(f"rtrain {__version__}")
        return
    from rtrain.cli.app import run

    interrupt.leaves = False
    try:
        code = run(sys.argv[1:])
    except BaseException:  # packages make other errors of a KeyboardInterrupt
        if not interrupt.came:
            raise
    interrupt.leaves = True
    sys.exit(INTERRUPTED if interrupt.came else code)
