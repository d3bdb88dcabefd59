"""How an error looks on a terminal."""

from __future__ import annotations

import os
import sys

from rtrain.printable import printable
from rtrain.terminal import say


def say_error(text: str) -> None:
    """Print an error to the standard error; on a terminal, what is wrong and what to try have a colour.

    ``NO_COLOR`` and ``TERM=dumb`` switch colours off.
    """
    if not sys.stderr.isatty() or "NO_COLOR" in os.environ:
        say(text, err=True)
        return
    from rich.console import Console
    from rich.text import Text

    shown = Text(printable(text, "\n\t"))
    shown.highlight_regex(r"(?m)^error:|^[ |]*\^+$", "red")
    shown.highlight_regex(r"(?m)^ *(did you mean|try):", "cyan")
    Console(file=sys.stderr).print(shown, soft_wrap=True)
