"""Write checkpoints asynchronously: training continues while the files are written from a copy in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from rtrain.runs.checkpoints import Writer


def in_turn(*writers: Writer) -> Writer:
    """Return what has each of the writers write its files into the folder."""

    def write(folder: Path) -> None:
        for one in writers:
            one(folder)

    return write


class AsyncWriter:
    """Runs one task at a time, in a thread or in the caller's."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a task is running in the thread."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, task: Callable[[], None], *, in_thread: bool) -> None:
        """Run a task, in a thread if ``in_thread``, when the previous task is done; raise what that one raised."""
        self.wait()
        if not in_thread:
            task()
            return
        thread = threading.Thread(target=self._do, args=(task,), name="rtrain-saver")
        thread.start()
        self._thread = thread  # not before: a signal may come in between

    def wait(self) -> None:
        """Return when nothing is being done any more; raise what the task raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _do(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # raised by wait() in the thread that trains
            self._error = error
