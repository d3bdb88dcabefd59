"""What a process was started with: variables of the environment are set for a while, arguments are hidden."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def variables_set(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables in the block, and no longer. All others are left alone: another thread may be setting them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def arguments_hidden() -> Iterator[None]:
    """Hide the arguments of this process in the block: a parser in code of the user's would take them for its own."""
    before = sys.argv
    sys.argv = before[:1]
    try:
        yield
    finally:
        sys.argv = before


def drop_arguments() -> None:
    """Drop the arguments of a process of Ray's, for code of the user's that runs in it from now on."""
    del sys.argv[1:]
