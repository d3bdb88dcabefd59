"""What a call from Python shows of a run or a sweep: plain lines in IPython and notebooks, nothing in a script."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from rtrain.config.calls.call import Call, in_python
from rtrain.displays.run import PlainDisplay, PlainLines
from rtrain.runs.observer import Observer, SilentObserver
from rtrain.sweeps.observer import SweepObserver

D = TypeVar("D")


def run_display(quiet: bool | None, call: Call) -> Observer | None:
    """Return the display of a run, or None if nothing is to be shown.

    Args:
        quiet: Whether nothing is; None: unless IPython runs the code.
        call: Asks for the run.
    """
    return _RunDisplay(call) if _shows(quiet) else None


def sweep_display(quiet: bool | None, call: Call) -> SweepObserver | None:
    """Return the display of a sweep, or None if nothing is to be shown.

    Args:
        quiet: Whether nothing is; None: unless IPython runs the code.
        call: Asks for the sweep.
    """
    if not _shows(quiet):
        return None
    from rtrain.displays.sweep_lines import PlainSweepDisplay

    class SweepDisplay(_InPython, PlainSweepDisplay):
        """Plain lines of a sweep."""

    return SweepDisplay(call)


def _shows(quiet: bool | None) -> bool:
    return in_ipython() if quiet is None else not quiet


def in_ipython() -> bool:
    """Return whether IPython runs the code: in a notebook, or in its terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


class _InPython(PlainLines):
    """Plain lines that name calls, where a terminal gets commands.

    Args:
        call: Whose forms they have.
    """

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def notice(self, text: str) -> None:
        """Print a warning line."""
        super().notice(in_python(text, self._call) or "")

    def printed(self, text: str) -> None:
        """Print what workers have printed."""
        super()._print(text)

    def _print(self, text: str) -> None:
        super()._print(in_python(text, self._call) or "")


class _RunDisplay(_InPython, PlainDisplay):
    """Plain lines of a run."""


class WarningObserver(SilentObserver):
    """Says only what the user should know, as warnings.

    Args:
        call: What it says has the form of this call.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._error: UserWarning | None = None

    def notice(self, text: str) -> None:
        """Warn. Where a warning is an error (``python -W error``), it waits: it would end the run in the middle."""
        try:
            warnings.warn(in_python(text, self._call) or "", stacklevel=2)
        except UserWarning as error:
            self._error = self._error or error

    def raise_error(self) -> None:
        """Raise the first warning that is an error, if there is one."""
        if self._error is not None:
            raise self._error


@contextmanager
def observing(display: D | None, call: Call) -> Iterator[D | WarningObserver]:
    """Give a display, or else what warns.

    Raises:
        UserWarning: A warning is an error, and the block itself raised nothing.
    """
    if display is not None:
        yield display
        return
    observer = WarningObserver(call)
    yield observer
    observer.raise_error()
