"""The end of this process, without the second that Python takes to look through all that torch and Ray have made."""

import atexit
import gc
import io
import os
import stat
from contextlib import suppress

BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


def end_quickly() -> None:
    """Have Python end without taking apart what is still in use; garbage is collected, and files are written.

    It holds for what is registered with ``atexit`` from now on, which Python calls before.
    """
    atexit.register(_leave_to_the_system)


def _leave_to_the_system() -> None:
    for one in gc.get_objects():
        if type(one) in BUFFERED:
            _flush(one)
    gc.collect()
    gc.freeze()


def _flush(file: io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom) -> None:
    """Write what Python would when it takes the file apart; a thread may wait for the other end of a pipe forever."""
    with suppress(OSError, ValueError):  # as Python does then: the disk is full, or the file closed
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.flush()
