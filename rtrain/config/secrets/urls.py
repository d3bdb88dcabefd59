"""Secrets in URLs and connection strings: users, passwords, signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from rtrain.config.secrets.names import is_in_secret, is_secret_parameter

MASK = "***"
NO_USERS = ("anonymous", MASK)
_SCHEME = re.compile(r"[\w+.\-]{0,20}://")
_STORE = re.compile(r"\b(?:s3a?|gs|gcs|az|abfss?)://\Z", re.IGNORECASE)
"""Who reads an object store is known from the environment, too."""
_USER = re.compile(r"([^:${}]+|\$\{[^{}]*\}):(.+)", re.DOTALL)
"""A user, or a reference to one, and a password."""
_STOP = re.compile(r"[\s'\"<>]")
_NUMBER = r"(?:[0-5]?\d{1,4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"
_PORT = re.compile(rf"[^/:@]*:{_NUMBER}(?:[/?#\s'\"]|\Z)")
_HOST = re.compile(r"localhost:|[^/:@]*\.[^/:@]*:|[^/:@]*:\d{4}")
"""A server's name or address; a word without a dot, and a number of few digits, may be a user and a password."""
_AND_MORE = re.compile(r"@[\w.\-]+(?::\d+)?[/\s]")
"""A host, where a later ``@`` looks like the end of a password: one of a pip version, or of an address in a text."""
_PATH = re.compile(r"[^:@]*[/?#\s'\"]")
"""What begins with a server alone, or a bucket: a later ``@`` is part of the path."""
_NAME = re.compile(r"(^|[?&#;\s'\"])([+~]*[\w.\-\[\]%@/]+)=")
"""The beginning of a ``name=value`` of a URL, of a connection string, or of an override within a text."""
_OF_URL = ("?", "&", "#", ";")
_VALUE = re.compile(r"'[^']+'|\"[^\"]+\"|[^&\s'\"#;]+")


def without_secrets(text: str) -> str:
    """Return text without the users, passwords and signatures of the URLs and connection strings in it."""
    text = _put(text, [(start, end + 1) for start, end in _users(text)], "")  # with the @
    return _put(text, _parameters(text), MASK)


def masked_urls(text: str, shown: Callable[[str], str]) -> str:
    """Return text with the secrets masked in the URLs and connection strings in it; those of an object store are cut.

    Args:
        text: The text.
        shown: Returns a user or a password as it may be written, empty unless it is a reference.
    """
    for start, end in reversed(list(_users(text))):
        if _STORE.search(text, 0, start):
            text = text[:start] + text[end + 1 :]
        else:
            text = text[:start] + _shown_user(text[start:end], shown) + text[end:]
    return _put(text, _parameters(text), MASK)


def _shown_user(text: str, shown: Callable[[str], str]) -> str:
    """Return what stands before the ``@`` of a URL as it may be written: as it is, if the secret is a reference."""
    if reference := shown(text):
        return reference
    found = _USER.fullmatch(text)
    password = shown(found[2]) if found else ""
    return f"{found[1]}:{password}" if found and password else MASK


def secrets_in_url(text: str) -> list[str]:
    """Return the passwords and signatures of the URLs in ``text``; of a user without a password, the user."""
    users = [text[start:end].partition(":") for start, end in _users(text)]
    signed = [text[start:end].strip("'\"") for start, end in _parameters(text)]
    passwords = [password or user for user, _, password in users]
    return [*passwords, *(one[: found.start()] for one in passwords if (found := _AND_MORE.search(one))), *signed]


def _put(text: str, places: Iterable[tuple[int, int]], instead: str) -> str:
    """Return a text with something else in these places."""
    parts, done = list[str](), 0
    for start, end in places:
        parts += [text[done:start], instead]
        done = end
    return "".join(parts) + text[done:]


def _parameters(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of parameters that are named like secrets begin and end."""
    at = 0
    while "=" in text and (name := _NAME.search(text, at)) is not None:
        at = name.end() - 1
        is_secret = is_secret_parameter if name[1] in _OF_URL else is_in_secret
        value = _VALUE.match(text, name.end()) if is_secret(name[2]) else None
        if value is not None:
            yield value.span()
            at = value.end()


def _users(text: str) -> Iterator[tuple[int, int]]:
    """Yield where users and passwords begin and end in the URLs of a text; an ``@`` follows each.

    A password may hold anything, an ``@`` and spaces too, so it ends at the last one. All of this takes a time that
    grows like the text, whatever that is.
    """
    if "://" not in text or "@" not in text:
        return
    schemes = list(_SCHEME.finditer(text))
    whole = len(schemes) == 1 and not _STOP.search(text, 0, schemes[0].start())  # the text is one URL
    for one, following in zip(schemes, [*schemes[1:], None], strict=True):
        start, end = one.end(), len(text) if following is None else following.start()
        stop = _STOP.search(text, start, end)
        last, head = text.rfind("@", start, end), text.rfind("@", start, end if stop is None else stop.start())
        places = [last, head] if whole or head < 0 else [head]
        at = next((at for at in places if at >= 0 and _is_user(text[start:at], one[0].lower())), None)
        if at is not None:
            yield start, at


def _is_user(text: str, scheme: str) -> bool:
    """Tell whether what stands between the scheme of a URL and an ``@`` is a user, with a password or without."""
    if ":" not in text:  # Azure's container is not a user
        return bool(text) and not _PATH.match(text) and not scheme.startswith("abfs") and text not in NO_USERS
    is_address = text.startswith("[")
    return (
        not is_address
        and not _PATH.match(text)
        and not (_PORT.match(text) and (_HOST.match(text) or _STOP.search(text)))
    )
