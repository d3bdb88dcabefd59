"""End a worker that gets no further, after it has told where it hangs."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rtrain.engine.failures import HANG
from rtrain.runs.manifest import utc_now
from rtrain.runs.records import FailureRecord
from rtrain.trainers.liveness import Life
from rtrain.trainers.worker import Channel

GRACE_SECONDS = 3.0
"""Time for the other workers to tell where they are, before the end of this one ends them too."""
EXIT_CODE = 70


class _Silence:
    """How long a worker has been silent; time in which its whole process was stopped (SIGSTOP) does not count."""

    def __init__(self) -> None:
        self._looked_at, self._stopped = time.monotonic(), 0.0
        self._sign_at: float | None = None

    def seconds(self, sign_at: float | None, interval: float) -> float:
        """Return the seconds since a sign of life; called every ``interval`` seconds, unless the process is stopped."""
        now = time.monotonic()
        if sign_at != self._sign_at:
            self._sign_at, self._stopped = sign_at, 0.0
        self._stopped += max(0.0, now - self._looked_at - 2 * interval)
        self._looked_at = now
        return 0.0 if sign_at is None else now - sign_at - self._stopped


class HangChannel(Channel, Protocol):
    """What a watchdog sends to the other workers, and receives from them."""

    def report_hang(self) -> None:
        """Tell the other workers of this attempt that this one hangs."""

    def peer_hang_reported(self) -> bool:
        """Return whether one of them has."""


class Watchdog:
    """Watches one worker from a separate thread.

    Args:
        rank: Number of the worker; the training runs in the thread that makes its watchdog.
        life: Its signs of life.
        seconds: Longest time without one.
        logs_dir: Where the stack of every thread is written, to ``worker-<rank>.stacks.txt``.
        channel: The channel to the driver and the other workers.
        end: Ends the process.
    """

    def __init__(
        self,
        rank: int,
        life: Life,
        seconds: float,
        logs_dir: Path,
        channel: HangChannel,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._rank, self._life, self._seconds, self._channel, self._end = rank, life, seconds, channel, end
        self._path = logs_dir / f"worker-{rank}.stacks.txt"
        self._training = threading.get_ident()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rtrain-watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._closing.set()
        self._thread.join(timeout=2 * GRACE_SECONDS)

    def _watch(self) -> None:
        silence, interval = _Silence(), min(1.0, self._seconds / 10)
        while not self._closing.wait(interval):
            quiet = silence.seconds(self._life.sign_at, interval)
            # Where one hangs, the others wait for it, and shall tell where before they lose their connection.
            if quiet > self._seconds or (quiet > self._seconds / 2 and self._channel.peer_hang_reported()):
                self._channel.report_hang()
                self._tell(quiet)
                self._closing.wait(GRACE_SECONDS)
                self._end(EXIT_CODE)
                return

    def _tell(self, quiet: float) -> None:
        """Write the stack of every thread, and record a failure that says in which line training stands."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{utc_now()} worker {self._rank}, after step {self._life.step}, hangs in {self._place()}\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        self._channel.send(
            FailureRecord(
                rank=self._rank,
                type=HANG,
                message=f"no progress for {quiet:.0f} seconds after step {self._life.step}, in {self._place()}",
                place=self._place(),
                seconds=self._seconds,
                traceback=self._path.read_text(encoding="utf-8"),
                time=time.time(),
            )
        )

    def _place(self) -> str:
        """Return the line that the training thread is in."""
        frame = sys._current_frames().get(self._training)
        if frame is None:
            return "a thread that has ended"
        folder, name = os.path.split(frame.f_code.co_filename)
        return f"{os.path.basename(folder)}/{name}:{frame.f_lineno} ({frame.f_code.co_name})"  # noqa: PTH119
