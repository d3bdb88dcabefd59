"""The key-value store of a Ray cluster, as rtrain uses it: calls that fail are repeated for half a minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

NAMESPACE = "rtrain"
PAUSES_SECONDS = (0.1, 0.3, 1, 2, 4, 6, 8, 8)
"""Waits before a call is made again: Ray's head may be busy, or be restarting, and a network may drop a call."""
LOG = logging.getLogger("rtrain.ray")
T = TypeVar("T")


def get(key: str | bytes) -> bytes | None:
    """Return what is kept under a key; None for nothing."""
    from ray.experimental import internal_kv

    found: bytes | None = _persistently(lambda: internal_kv._internal_kv_get(key, namespace=NAMESPACE))
    return found


def text(key: str) -> str | None:
    """Return the text that is kept under a key; None for nothing."""
    found = get(key)
    return found.decode() if found else None


def put(key: str, value: str) -> None:
    """Keep a text under a key."""
    from ray.experimental import internal_kv

    _persistently(lambda: internal_kv._internal_kv_put(key, value, namespace=NAMESPACE))


def remove(key: bytes) -> None:
    """Keep nothing under a key."""
    from ray.experimental import internal_kv

    _persistently(lambda: internal_kv._internal_kv_del(key, namespace=NAMESPACE))


def keys(prefix: str) -> list[bytes]:
    """Return the keys that begin with a prefix."""
    from ray.experimental import internal_kv

    found: list[bytes] = _persistently(lambda: internal_kv._internal_kv_list(prefix, namespace=NAMESPACE))
    return found


def _persistently(call: Callable[[], T]) -> T:
    """Return what a call returns, once it succeeds.

    Raises:
        RayError: It never did.
    """
    from ray.exceptions import GetTimeoutError, RpcError

    for seconds in PAUSES_SECONDS:
        try:
            return call()
        except (RpcError, GetTimeoutError) as error:
            LOG.warning("Ray's key-value store failed, trying again in %s seconds: %s", seconds, error)
            time.sleep(seconds)
    return call()
