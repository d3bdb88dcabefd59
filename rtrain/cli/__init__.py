"""The command line: parse, call one function, print. One file per command."""

from __future__ import annotations

import atexit
import logging
import signal
import sys

from rtrain.cli.interrupt import INTERRUPTED, Interrupt
from rtrain.process.huge_pages import use_huge_pages
from rtrain.process.quick_end import end_quickly
from rtrain.process.quick_imports import search_less

MADE_READY = (["fit"], ["resume"])
"""Commands that ``rtrain up`` has everything ready for."""


def main() -> None:
    """Run the ``rtrain`` command; ``--version`` and a TAB are answered before it is imported."""
    interrupt = _begun()
    if sys.argv[1:] == ["--version"]:
        from rtrain import __version__

        print(f"rtrain {__version__}")
        return
    if sys.argv[1:2] == ["complete"]:
        from rtrain.cli.completing.quick import answered

        if answered(sys.argv[2:]):
            return
    code = None
    if sys.argv[1:2] in MADE_READY:
        from rtrain.cli.warm.client import ran

        code = ran(sys.argv[1:])
    sys.exit(_run(interrupt) if code is None else code)


def main_in_seat() -> int:
    """Run the command in ``sys.argv`` in this process, which has waited for it; return its exit code."""
    return _run(_begun())


def _begun() -> Interrupt:
    search_less()
    end_quickly()
    use_huge_pages()
    interrupt = Interrupt()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt.receive)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # called last: Python would end by the signal
        sys.unraisablehook = interrupt.renew
    from rtrain.process.terminal import Notes, open_streams

    open_streams()
    logging.getLogger("rtrain").addHandler(Notes(logging.WARNING))
    return interrupt


def _run(interrupt: Interrupt) -> int:
    from rtrain.cli.app import run

    interrupt.leaves = False
    try:
        code = run(sys.argv[1:])
    except BaseException:  # packages make other errors of a KeyboardInterrupt
        if not interrupt.came:
            raise
    interrupt.leaves = True
    return INTERRUPTED if interrupt.came else code
