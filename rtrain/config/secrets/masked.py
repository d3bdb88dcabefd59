"""Keep secrets out of what is written: masked by key, cut from URLs, in data and in overrides."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from rtrain.config.secrets.names import is_in_secret, is_secret
from rtrain.config.secrets.urls import MASK, masked_urls

_NAME = re.compile(r"[\w\-]+")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Bot) (?=\$)", re.IGNORECASE)
_NODE = re.compile(r"\$\{[^:{}$]+\}")
_CALL = re.compile(r"\$\{oc\.(env|decode):(.*)\}", re.DOTALL)
_VARIABLE = re.compile(r"([^,{}]*)(?:,(.*))?", re.DOTALL)
_BRACE = re.compile(r"[{}]|\Z")
_DATA = re.compile(r"\s*(?:[{\[]|(?:choice|shuffle|sort|extend_list|tag)\()")
"""How a mapping or a list begins in a text, and what Hydra makes of several."""
_QUOTING = re.compile(r"[\s'\"\\]")
"""URLs without can be cut without parsing."""
MAX_NESTED = 8
MAX_PARSED = 5000
"""Longest override, in characters, that is parsed to mask a part of it."""


def mask(data: Any, key: str = "", *, secret: bool = False) -> Any:
    """Return plain data with secrets masked.

    Args:
        data: What stands under ``key``.
        key: Its name; the items of a list go by that of the list.
        secret: Whether it lies in something that is a secret.
    """
    secret = secret or is_secret(key)
    if isinstance(data, dict):
        return {name: mask(value, str(name), secret=secret) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [mask(value, key, secret=secret) for value in data]
    return mask_value(key, data, secret=secret)


def mask_value(key: str, value: Any, *, secret: bool = False) -> Any:
    """Return a scalar as it may be written under ``key``; a reference to another value stays."""
    if value is None or isinstance(value, bool):
        return value
    if secret or is_secret(key):
        return _shown_secret(value) if isinstance(value, str) else MASK
    return _mask_text(value) if isinstance(value, str) else value


def mask_word(word: str) -> str:
    """Return an override as it may be written; Hydra can still parse it, if it could before.

    One that can't be parsed, and names a secret, loses its whole value.
    """
    key, equals, value = word.partition("=")
    if equals and value and is_in_secret(key):
        return f"{key}={_shown_override(value, secret=True)}"
    is_quoted_url = "://" in value and _QUOTING.search(value) is not None
    if not equals or not (is_quoted_url or _names_secret(value)):
        return _with_masked_urls(word)
    return f"{key}={_shown_override(value, secret=False)}"


def _mask_text(text: str) -> str:
    """Return a text without secrets; it may be the text of a mapping, which something parses later."""
    if not _may_hold(text):
        return _with_masked_urls(text)
    shown = _shown_override(text, secret=False)
    return MASK if shown == f"'{MASK}'" else shown


def _with_masked_urls(text: str) -> str:
    return masked_urls(text, _shown_reference)


def secrets_in_text(text: str) -> list[str]:
    """Return the secrets in the text of a mapping, or of a list of them."""
    if not _may_hold(text) or len(text) > MAX_PARSED:
        return []
    parsed = _parsed(text)
    try:
        element = json.loads(text) if parsed is None else parsed._value
    except (ValueError, RecursionError):
        return [text]
    return list(_secret_leaves(element, secret=False))


def _may_hold(text: str) -> bool:
    """Tell whether a text may be that of a mapping with a secret, or of several."""
    return _DATA.match(text) is not None and _names_secret(text)


def _secret_leaves(element: Any, *, secret: bool) -> Iterator[str]:
    """Yield the secrets in what Hydra has read."""
    if isinstance(element, dict):
        for name, value in element.items():
            yield from _secret_leaves(value, secret=secret or is_secret(_text(name)))
    elif isinstance(element, list) or hasattr(element, "tags"):
        for one in element if isinstance(element, list) else getattr(element, "list", None) or []:
            yield from _secret_leaves(one, secret=secret)
    elif secret:
        yield _text(element)


def _names_secret(text: str) -> bool:
    return any(map(is_secret, _NAME.findall(text)))


def _shown_override(value: str, *, secret: bool) -> str:
    """Return the value of an override as it may be written."""
    if shown := _shown_reference(value) if secret else "":
        return shown
    parsed = _parsed(value) if len(value) <= MAX_PARSED else None
    if parsed is None:
        return f"'{MASK}'" if secret or _names_secret(value) else _with_masked_urls(value)
    element = parsed._value
    masked = _masked_element(element, secret=secret)
    if masked is element:
        return value
    return f"'{MASK}'" if parsed.is_sweep_override() else _rendered(masked)


@lru_cache(maxsize=256)
def _parsed(value: str) -> Any:
    """Return Hydra's reading of a value; None if it can't be read."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(f"key={value}")
    except (HydraException, RecursionError):
        return None


def _masked_element(value: Any, *, secret: bool, key: str = "") -> Any:
    """Return a part of what Hydra has read with its secrets masked; the part itself if it has none."""
    from hydra.core.override_parser.types import Quote, QuotedString

    secret = secret or is_secret(key)
    if isinstance(value, dict):
        pairs = {name: _masked_element(one, secret=secret, key=_text(name)) for name, one in value.items()}
        return value if all(pairs[name] is one for name, one in value.items()) else pairs
    if isinstance(value, list):
        items = [_masked_element(one, secret=secret, key=key) for one in value]
        return value if all(map(operator.is_, items, value)) else items
    if hasattr(value, "tags"):  # a sweep
        inner = getattr(value, "list", None) or []
        return MASK if secret or _masked_element(inner, secret=False) is not inner else value
    true = _text(value) if isinstance(value, QuotedString) else value
    shown = mask_value(key, true, secret=secret)
    return value if shown == true else QuotedString(str(shown), Quote.single)


def _rendered(value: Any) -> str:
    """Return what Hydra has read as it reads it again; references stay."""
    from hydra.core.override_parser.types import Override

    if isinstance(value, dict):
        return "{" + ", ".join(f"{_rendered(name)}: {_rendered(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_rendered, value))}]"
    is_reference = type(value) is str and "${" in value
    return value if is_reference else Override._get_value_element_as_str(value)


def _text(name: Any) -> str:
    return str(getattr(name, "text", name))


def _shown_secret(value: str) -> str:
    """Return a secret as it may be written: a reference stays, without the literal default of a variable."""
    scheme = _SCHEME.match(value)
    start = scheme.end() if scheme else 0
    reference = _shown_reference(value[start:])
    return value[:start] + reference if reference else MASK if value else value


def _shown_reference(text: str, depth: int = 0) -> str:
    """Return a text that is one reference as it may be written; empty if it is something else."""
    if _NODE.fullmatch(text):
        return text
    found = _CALL.fullmatch(text) if depth < MAX_NESTED else None
    if found is None:
        return ""
    if found[1] == "decode":
        inner = _shown_reference(found[2], depth + 1)
        return f"${{oc.decode:{inner}}}" if inner else ""
    variable = _VARIABLE.fullmatch(found[2])
    if variable is None:
        return ""
    default = (variable[2] or "").strip()
    if default in ("", "null"):
        return text
    shown = _shown_reference(default, depth + 1) or ("" if _BRACE.search(default)[0] else MASK)  # type: ignore[index]
    return f"${{oc.env:{variable[1]},{shown}}}" if shown else ""
