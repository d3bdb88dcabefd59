"""How an error looks on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rtrain.process.terminal import say
from rtrain.text.printable import printable
from rtrain.text.wrapping import fitted

if TYPE_CHECKING:
    from rich.text import Text


def say_error(text: str) -> None:
    """Print an error to the standard error; on a terminal, what is wrong and what to try have a colour.

    ``NO_COLOR`` and ``TERM=dumb`` switch colours off.
    """
    if not sys.stderr.isatty() or "NO_COLOR" in os.environ:
        say(text, err=True)
        return
    from rich.console import Console

    Console(file=sys.stderr).print(_coloured(fitted(printable(text, "\n\t"), sys.stderr)), soft_wrap=True)


def _coloured(text: str) -> Text:
    """Return a text with colours for what is wrong and what to try."""
    from rich.text import Text

    from rtrain.config.did_you_mean import START_OF_HINT

    shown = Text(text)
    shown.highlight_regex(r"(?m)^error:|^[ |]*\^+$", "red")
    shown.highlight_regex(START_OF_HINT, "cyan")
    return shown
