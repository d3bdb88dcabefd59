"""What a call from Python shows of a run or a sweep: plain lines in IPython and notebooks, nothing in a script."""

from __future__ import annotations

import sys
import warnings

from rtrain.displays.run import PlainDisplay
from rtrain.runs.recorder import Observer
from rtrain.sweeps.observer import SweepObserver
from rtrain.training import SilentObserver


def run_display(quiet: bool | None) -> Observer | None:
    """Return the display of a run, or None if nothing is to be shown.

    Args:
        quiet: Whether nothing is; None: unless IPython runs the code.
    """
    return PlainDisplay() if _shows(quiet) else None


def sweep_display(quiet: bool | None) -> SweepObserver | None:
    """Return the display of a sweep, or None if nothing is to be shown.

    Args:
        quiet: Whether nothing is; None: unless IPython runs the code.
    """
    if not _shows(quiet):
        return None
    from rtrain.displays.sweep_lines import PlainSweepDisplay

    return PlainSweepDisplay()


def _shows(quiet: bool | None) -> bool:
    return in_ipython() if quiet is None else not quiet


def in_ipython() -> bool:
    """Return whether IPython runs the code: in a notebook, or in its terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


class WarningObserver(SilentObserver):
    """Says only what the user should know, as warnings."""

    def notice(self, text: str) -> None:
        """Warn."""
        warnings.warn(text, stacklevel=2)
