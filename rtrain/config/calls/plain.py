"""Values from Python as plain data: what YAML can hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from omegaconf import OmegaConf

from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError


def is_frame(value: Any) -> bool:
    """Return whether this is a table of pandas, polars or Arrow, lazy ones included; no column is looked at."""
    return hasattr(type(value), "columns")


def plain_value(value: Any, key: str = "") -> Any:
    """Return a value as None, a bool, a number, a text, or lists and mappings of them.

    References of a ``DictConfig`` stay references: ``${oc.env:TOKEN}`` is read when the config is resolved.

    Args:
        value: Also NumPy's numbers and arrays, paths, enums, and OmegaConf's containers.
        key: Where it stands, for errors.

    Raises:
        ConfigError: It is something else.
    """
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=False, enum_to_str=True)
    if isinstance(value, Enum):
        return plain_value(value.value, key)
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):  # without the classes of numpy.str_, IntEnum and the like
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {plain_value(name, key): plain_value(one, f"{key}.{name}".strip(".")) for name, one in value.items()}
    if hasattr(value, "columns") and hasattr(value, "shape"):
        message = f"{key}: a config can't hold a table: {type(value).__module__}.{type(value).__qualname__}."
        raise ConfigError(message, '  write it into a file, df.to_parquet("data.parquet"), and name that')
    if hasattr(value, "tolist"):  # a number or an array of NumPy or torch
        return plain_value(value.tolist(), key)
    if isinstance(value, Collection) and not isinstance(value, bytes | bytearray | set | frozenset | type):
        return [plain_value(one, f"{key}.{index}") for index, one in enumerate(value)]
    raise _not_plain(value, key)


def _not_plain(value: Any, key: str) -> ConfigError:
    kind = type(value)
    if isinstance(value, set | frozenset):
        return ConfigError(f"{key}: a set has no order.", "  Give a list.")
    if isinstance(value, type) or callable(value):
        name = getattr(value, "__qualname__", kind.__qualname__)
        path = f"{getattr(value, '__module__', None) or kind.__module__}.{name}"
        message = f"{key}: a config can hold the name of a class or function, not {name} itself."
        if path.startswith("__main__."):
            return ConfigError(message, f"  put {name} into a file and refer to it by name: 'FILE.{name}'")
        return ConfigError(message, f"  {to_try(repr(path))}")
    return ConfigError(
        f"{key}: a config can't hold a value of the class {kind.__module__}.{kind.__qualname__}.",
        "  Use None, a bool, a number, a string, or a list or mapping of them.",
    )
