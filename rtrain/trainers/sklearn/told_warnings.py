"""What scikit-learn warns of while it fits, as lines that name the key."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sklearn

from rtrain.errors import shortened

_HOME = Path(sklearn.__file__).parent


@contextmanager
def told_warnings(node: Mapping[str, Any], notice: Callable[[str], None]) -> Iterator[None]:
    """Show each warning of scikit-learn that comes up in the block once, as a line; others are shown as before.

    Args:
        node: ``trainer.estimator``.
        notice: Shows a line.
    """
    told = set[str]()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any, **more: Any) -> None:
            if not category.__module__.startswith("sklearn.") and not Path(filename).is_relative_to(_HOME):
                before(message, category, filename, *rest, **more)
                return
            line = _line(str(message), node)
            if line not in told:
                told.add(line)
                notice(line)

        warnings.showwarning = show
        yield


def _line(text: str, node: Mapping[str, Any]) -> str:
    """Return the line of a warning: with the first argument of the config that it mentions, or the estimator's key."""
    keys = dict(_arguments(node, "trainer.estimator"))
    named = next((keys[word] for word in re.findall(r"\w+", text) if word in keys), "trainer.estimator")
    return f"{named}: {shortened(' '.join(text.split()))}"


def _arguments(node: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the key of each argument, at any depth; outer ones last, so that they win."""
    parts = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for name, value in parts:
        yield from _arguments(value, f"{where}.{name}")
        if isinstance(name, str) and not name.startswith("_"):
            yield name, f"{where}.{name}"
