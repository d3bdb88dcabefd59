"""The command line: parse, call one function, print. One file per command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the ``rtrain`` command; ``--version`` is answered before anything is imported."""
    if sys.argv[1:] == ["--version"]:
        from rtrain import __version__

        print(f"rtrain {__version__}")
        return
    from rtrain.cli.app import run

    sys.exit(run(sys.argv[1:]))
