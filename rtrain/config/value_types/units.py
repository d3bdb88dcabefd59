"""Durations and sizes with units: ``5m`` for a key that is in seconds, ``2GiB`` for one that is in bytes.

A key is in seconds, or in bytes, if its name ends so. The config holds the number.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from omegaconf import DictConfig, FloatNode, IntegerNode, ValueNode
from omegaconf.base import Node
from omegaconf.errors import ValidationError

from rtrain.config.value_types.numeric import is_number

_NUMBER_AND_UNIT = re.compile(r"\s*\d*\.?\d+\s*[A-Za-z].*")
_DAYS = re.compile(r"(\d+)(?:-|:(?=\d+:\d+:))(?=\d+:\d+:\d+$)")
"""The days of ``1-12:00:00`` and ``01:12:00:00``."""
_CLOCK = re.compile(r"(\d+ days )?\d+:[0-5]\d:[0-5]\d(\.\d+)?|P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
"""``1:30:00`` and ISO 8601's ``PT1H30M``."""
_NO_MINUTES = re.compile(r"\s*\d+\s*h\s*[0-5]?\d")
"""``1h30``."""


class OwnNode(ValueNode):
    """A node whose copies keep its class; those of OmegaConf's nodes get the class that OmegaConf names."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return such a copy."""
        kind: Any = type(self)
        copied = kind()
        self._deepcopy_impl(copied, memo)
        return copied


class SecondsNode(OwnNode, FloatNode):
    """A number of seconds; takes durations, too."""

    def _validate_and_convert_impl(self, value: Any) -> float:
        return super()._validate_and_convert_impl(_read(value, seconds, "Seconds"))


class BytesNode(OwnNode, IntegerNode):
    """A number of bytes; takes sizes with a unit, too."""

    def _validate_and_convert_impl(self, value: Any) -> int:
        return super()._validate_and_convert_impl(_read(value, num_bytes, "Bytes"))


NODES = {"seconds": (FloatNode, SecondsNode), "bytes": (IntegerNode, BytesNode)}
"""What the name of a key ends with -> the node that OmegaConf gives it, and the one that reads units."""
PATTERNS = {
    "seconds": r"^\s*(\d*\.?\d+\s*[A-Za-z]+\s*)+(\d+)?$|^(\d+[-:])?\d+:\d\d:\d\d|^P[\dDTHMS.]+$",
    "bytes": r"^\s*\d*\.?\d+\s*[A-Za-z]+\s*$",
}
"""The same -> the texts that it takes as well as numbers, for the JSON schema."""


def unit_of(key: str) -> str | None:
    """Return ``seconds`` or ``bytes`` if ``key`` is in them."""
    last = key.rpartition(".")[2].rpartition("_")[2]
    return last if last in NODES else None


def with_units(node: DictConfig) -> DictConfig:
    """Return the schema ``node``, whose keys in seconds and in bytes take units from now on."""

    def reading(key: str, child: Node) -> type[OwnNode] | None:
        plain, own = NODES.get(unit_of(key) or "", (None, None))
        return own if type(child) is plain else None

    return with_own_nodes(node, reading)


def with_own_nodes(node: DictConfig, choose: Callable[[str, Node], type[OwnNode] | None]) -> DictConfig:
    """Return the schema ``node`` with nodes of another class where ``choose`` gives one for a name and its node."""
    for owner, key, child in list(leaves(node)):
        own: Any = choose(key, child)
        if own is not None:
            made = own(child._value(), key=key, parent=owner, is_optional=child._is_optional())
            owner.__dict__["_content"][key] = made
    return node


def leaves(node: DictConfig) -> Iterator[tuple[DictConfig, str, Node]]:
    """Yield each section of a schema that holds a value, the name of the value, and its node."""
    content = node.__dict__["_content"]
    for key, child in content.items() if isinstance(content, dict) else ():
        if isinstance(child, DictConfig):
            yield from leaves(child)
        elif isinstance(key, str):
            yield node, key, child


def seconds(text: str) -> float:
    """Return the seconds of a duration: ``5m``, ``1h30m``, ``1h30``, ``1:30:00``, ``PT90S``, ``500ms``, ``2 days``.

    Raises:
        ValueError: It is none.
    """
    if _NO_MINUTES.fullmatch(text):
        text = f"{text}m"
    text = _DAYS.sub(r"\1 days ", text)
    if not _NUMBER_AND_UNIT.fullmatch(text) and not _CLOCK.fullmatch(text):
        raise ValueError(text)
    import pandas as pd  # takes a while, and few configs have a duration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some of the units may be gone one day
        return float(pd.Timedelta(text).total_seconds())


def num_bytes(text: str) -> int:
    """Return the bytes of a size: ``2GiB``, ``1.5GB``.

    Raises:
        ValueError: It is none.
    """
    if not _NUMBER_AND_UNIT.fullmatch(text):
        raise ValueError(text)
    from pydantic import ByteSize, TypeAdapter

    return int(TypeAdapter(ByteSize).validate_python(text))


def _read(value: Any, read: Callable[[str], float], unit: str) -> Any:
    """Return the number of a text with a unit; other values as they are."""
    if not isinstance(value, str) or is_number(value):
        return value
    try:
        return read(value)
    except ValueError:
        raise ValidationError(f"Value '$VALUE' of type '$VALUE_TYPE' could not be converted to {unit}") from None
