"""Variables of the environment in what is written: they stay ``${oc.env:NAME}`` while all else is resolved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omegaconf.resolvers import oc

from rtrain.config.compose.resolvers import replaced_resolvers

_OPEN, _CLOSE = "\ue000", "\ue001"


@contextmanager
def symbolic_environment() -> Iterator[None]:
    """Let ``${oc.env:KEY}`` resolve to a mark for itself while the block runs; ``spell_out`` reads the mark."""

    def env(key: str, *default: Any) -> str:
        shown = "".join(f",{'null' if one is None else one}" for one in default)
        return f"{_OPEN}oc.env:{key}{shown}{_CLOSE}"

    def decode(text: Any, *, _parent_: Any, _node_: Any) -> Any:
        marked = isinstance(text, str) and _OPEN in text
        return f"{_OPEN}oc.decode:{text}{_CLOSE}" if marked else oc.decode(text, _parent_, _node_)

    with replaced_resolvers({"oc.env": env, "oc.decode": decode}):
        yield


def spell_out(data: Any, *, escape: bool) -> Any:
    """Return plain data with the marks of environment variables written as ``${oc.env:KEY}``.

    Args:
        data: Data that was resolved inside ``symbolic_environment``.
        escape: For a YAML file: other text that looks like an interpolation is escaped, and a key may be a number. JSON
            has texts as keys alone.
    """
    if isinstance(data, dict):
        return {key if escape else str(key): spell_out(value, escape=escape) for key, value in data.items()}
    if isinstance(data, list):
        return [spell_out(value, escape=escape) for value in data]
    if not isinstance(data, str):
        return data
    text = data.replace("${", "\\${") if escape else data
    return text.replace(_OPEN, "${").replace(_CLOSE, "}")
