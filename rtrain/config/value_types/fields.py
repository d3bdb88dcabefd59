"""The types of a dataclass's fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, get_type_hints


@lru_cache(maxsize=1000)
def hints_of(conf: type) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass, which Python works out each time it is asked."""
    return MappingProxyType(get_type_hints(conf))
