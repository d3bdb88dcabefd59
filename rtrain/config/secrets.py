"""Keep secrets out of what is written: masked by key, cut from URLs, environment variables left symbolic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from omegaconf import OmegaConf
from omegaconf.resolvers import oc

MASK = "***"
_SECRET_KEY = re.compile(
    r"(^|_)(secret|password|passwd|passphrase|(api|access|private|account|secret)_?key|credential|connection_?string)s?(_|$)"
    r"|(^|_)token_*$|(^|_)(hf|api|auth|access|bearer|refresh|secret)_tokens$|(^|_)authorization$",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")
_TEXT_TOKENS = re.compile(r"(pad|eos|bos|unk|sep|cls|mask|start|end|image|special)_token$", re.IGNORECASE)
_ENDS = re.compile(r"([@\s'\"])")
_USERINFO = re.compile(
    r"(?<=://)(?!anonymous\Z)(?:(?<!abfs://)(?<!abfss://)[^/:]+\Z|[^/:]*:(?!\d+[/?]).+\Z)", re.DOTALL
)
"""User and password before the ``@`` of a URL; Azure's container and ``gs://anonymous@`` are no users.

The password may hold a slash. All patterns here take a time that grows like the text, whatever that is.
"""
_SIGNATURE = re.compile(
    r"([?&](?:[\w-]*(?:signature|token|secret|passwd|password|credential|(?:access|secret|api|private|account)_?key)|sig)=)[^&\s'\"]+",
    re.IGNORECASE,
)
_SIGNATURE_PARTS = re.compile(f"({_SIGNATURE.pattern})", re.IGNORECASE)
_KEY = re.compile(r"""(['"]?)(?<![\w\-])([\w\-]+)\1\s*:\s*""")
_QUOTED = re.compile(r"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)""")
_VALUE = re.compile(rf"""{_QUOTED.pattern}|\[[^\]]*(?:\]|\Z)|[^,}}\]\s{{[][^,}}\]]*""")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Bot) (?=\$)", re.IGNORECASE)
_NODE = re.compile(r"\$\{[^:{}$]+\}")
_CALL = re.compile(r"\$\{oc\.(env|decode):(.*)\}", re.DOTALL)
_VARIABLE = re.compile(r"([^,{}]*)(?:,(.*))?", re.DOTALL)
_BRACE = re.compile(r"[{}]|\Z")
_REST = re.compile(r"[^,}\]]*")
MAX_NESTED = 8
_OPEN, _CLOSE = "\ue000", "\ue001"


@cache
def is_secret(key: str) -> bool:
    """Return whether a key is named like a secret."""
    words = _HUMP.sub("_", key)
    return _SECRET_KEY.search(words) is not None and _TEXT_TOKENS.search(words) is None


def without_secrets(text: str) -> str:
    """Return text without the users, passwords and signatures of the URLs in it."""
    return _SIGNATURE.sub(rf"\1{MASK}", _take_users(text)[0])


def secrets_in_url(text: str) -> list[str]:
    """Return the passwords and signatures of the URLs in ``text``; of a user without a password, the user."""
    users = [found.partition(":") for found in _take_users(text)[1]]
    signed = [found[0].removeprefix(found[1]) for found in _SIGNATURE_PARTS.findall(text)]
    return [password if colon else user for user, colon, password in users] + signed


def _take_users(text: str) -> tuple[str, list[str]]:
    """Return a text without the users of the URLs in it, and these."""
    if "://" not in text:
        return text, []
    parts, users = _ENDS.split(text), list[str]()
    for index in range(0, len(parts) - 1, 2):
        user = _USERINFO.search(parts[index]) if parts[index + 1] == "@" else None
        if user is not None:
            users.append(user.group())
            parts[index], parts[index + 1] = parts[index][: user.start()], ""
    return "".join(parts), users


def mask_value(key: str, value: Any) -> Any:
    """Return a scalar as it may be written under ``key``; a reference to another value stays."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret(key):
        return _shown_secret(value) if isinstance(value, str) else MASK
    return without_secrets(value) if isinstance(value, str) else value


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


def mask(data: Any, key: str = "") -> Any:
    """Return plain data with secrets masked."""
    if isinstance(data, dict):
        return {name: mask(value, str(name)) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [mask(value, key) for value in data]
    return mask_value(key, data)


def mask_word(word: str) -> str:
    """Return an override as it may be written; Hydra can still parse it."""
    key, equals, value = word.partition("=")
    if equals and is_secret(key.lstrip("+~").rpartition(".")[2]) and value:
        shown = _shown_secret(value)
        return f"{key}='{MASK}'" if shown == MASK else f"{key}={shown}"
    return without_secrets(f"{key}{equals}{_mask_pairs(value)}")


@contextmanager
def symbolic_environment() -> Iterator[None]:
    """Let ``${oc.env:KEY}`` resolve to a mark for itself while the block runs; ``spell_out`` reads the mark."""

    def env(key: str, *default: Any) -> str:
        shown = "".join(f",{'null' if one is None else one}" for one in default)
        return f"{_OPEN}oc.env:{key}{shown}{_CLOSE}"

    def decode(text: Any, *, _parent_: Any, _node_: Any) -> Any:
        marked = isinstance(text, str) and _OPEN in text
        return f"{_OPEN}oc.decode:{text}{_CLOSE}" if marked else oc.decode(text, _parent_, _node_)

    OmegaConf.register_new_resolver("oc.env", env, replace=True)
    OmegaConf.register_new_resolver("oc.decode", decode, replace=True)
    try:
        yield
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)
        OmegaConf.register_new_resolver("oc.decode", oc.decode, replace=True)


def spell_out(data: Any, *, escape: bool) -> Any:
    """Return plain data with the marks of environment variables written as ``${oc.env:KEY}``; its keys are texts.

    Args:
        data: Data that was resolved inside ``symbolic_environment``.
        escape: Whether other text that looks like an interpolation is escaped, as a YAML needs it.
    """
    if isinstance(data, dict):
        return {str(key): spell_out(value, escape=escape) for key, value in data.items()}
    if isinstance(data, list):
        return [spell_out(value, escape=escape) for value in data]
    if not isinstance(data, str):
        return data
    text = data.replace("${", "\\${") if escape else data
    return text.replace(_OPEN, "${").replace(_CLOSE, "}")


def _mask_pairs(text: str) -> str:
    """Mask the secrets in mappings of an override."""
    parts, done, at = list[str](), 0, 0
    while (pair := _KEY.search(text, at)) is not None:
        start, secret = pair.end(), is_secret(pair[2])
        at = _end_of_value(text, start, secret=secret)
        value = text[start:at]
        if secret and value and (shown := _shown_secret(value)) != value:
            parts += [text[done:start], f"'{MASK}'" if shown == MASK else shown]
            done = at
    return "".join(parts) + text[done:]


def _end_of_value(text: str, start: int, *, secret: bool) -> int:
    """Return where a value ends; of one that is no secret and may hold some, where it begins."""
    if secret and text.startswith("${", start):
        depth = 0
        for brace in _BRACE.finditer(text, start):
            depth += {"{": 1, "}": -1, "": 0}[brace[0]]
            if depth == 0 or not brace[0]:
                rest = _REST.match(text, brace.end())
                return brace.end() if rest is None else rest.end()
    value = (_VALUE if secret else _QUOTED).match(text, start)
    return start if value is None else value.end()
