"""``logs/driver.log``: what the driver of a run logged, and what it showed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtrain.config.files.locations import shown
from rtrain.config.secrets.redact import Redactor
from rtrain.errors import RtrainError
from rtrain.run_lines import Limits, end_lines, event_line, is_milestone, start_line
from rtrain.runs.events import Event
from rtrain.runs.filesystem.files import unshare
from rtrain.runs.manifest import Manifest
from rtrain.runs.observer import Observer
from rtrain.runs.records import ProgressRecord
from rtrain.text.printable import printable

NAME = "driver.log"
_LOGGERS = ("rtrain", "ray")
_SHOWN = logging.getLogger("rtrain.shown")


@contextmanager
def driver_log(run_dir: Path, redact: Redactor) -> Iterator[None]:
    """Send the log messages of rtrain and Ray, and the error that the block ends with, to the run's ``driver.log``."""
    unshare(run_dir, f"logs/{NAME}")
    handler = logging.FileHandler(run_dir / "logs" / NAME, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_CleanFormatter(redact))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    loggers[0].setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        handler.close()


def log_error(error: BaseException) -> None:
    """Write the error that ends a run: what is shown of it, and of other errors than rtrain's the traceback."""
    known = isinstance(error, RtrainError)
    _SHOWN.error("the run failed: %s", error, exc_info=None if known else error)


class LoggingObserver:
    """Writes everything that an observer of the run receives to ``driver.log``, and passes it on.

    Args:
        observer: The display, say.
        run_dir: The run.
    """

    def __init__(self, observer: Observer, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._observer, self._limits = observer, Limits(None, None)

    def stage(self, name: str) -> None:
        """Log what the driver does now."""
        _SHOWN.info("%s", name)
        self._observer.stage(name)

    def notice(self, text: str) -> None:
        """Log what the user should know; workers know the run by its whole path."""
        text = text.replace(str(self._run_dir), shown(self._run_dir))
        _SHOWN.warning("%s", text)
        self._observer.notice(text)

    def started(self, run_dir: Path, manifest: Manifest) -> None:
        """Log what starts."""
        self._limits = Limits.of(manifest)
        _SHOWN.info("%s", start_line(run_dir, manifest))
        self._observer.started(run_dir, manifest)

    def progress(self, record: ProgressRecord) -> None:
        """Pass it on alone: there is one for each step."""
        self._observer.progress(record)

    def event(self, event: Event) -> None:
        """Log an epoch or an evaluation."""
        if is_milestone(event):
            _SHOWN.info("%s", event_line(event, self._limits))
        self._observer.event(event)

    def printed(self, text: str) -> None:
        """Pass it on alone: it is in the log of its worker."""
        self._observer.printed(text)

    def ended(self, run_dir: Path, manifest: Manifest) -> None:
        """Log how the run ended."""
        for line in end_lines(run_dir, manifest):
            _SHOWN.info("%s", line)
        self._observer.ended(run_dir, manifest)


class _CleanFormatter(logging.Formatter):
    """Writes a message without the secrets in it, and without what a terminal obeys."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return printable(self._redact(super().format(record)), "\n\t")
