"""A signature that identifies files written by this account.

It is an HMAC-SHA256 (RFC 2104). Its key is made at the first run and lies in ``$XDG_STATE_HOME/rtrain/seal.key``, by
default in ``~/.local/state``, readable by this account only. Where no key can be kept, nothing is signed.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from rtrain.errors import ConfigError

KEY_BYTES = 32
LINE = "# seal: "


def signature_of(text: str) -> str:
    """Return the mark of this account on ``text``; empty where it can't keep a key."""
    key = _read_key() or _make_key()
    return "" if key is None else _mark(key, text)


def is_own(text: str, mark: str) -> bool:
    """Tell whether ``mark`` is that of this account on ``text``."""
    key = _read_key()
    return key is not None and hmac.compare_digest(_mark(key, text).encode(), _bytes(mark))


def with_signature(config: str, project_root: str) -> str:
    """Return the text of a run's ``config.yaml`` with the mark on it, and on the folder whose modules it names."""
    mark = signature_of(f"{project_root}\n{config}")
    return f"{config}{LINE}{mark}\n" if mark else config


def is_signed_by_this_account(text: str, project_root: str) -> bool:
    """Return whether this account wrote the ``config.yaml`` of a run, for that folder, and it is unchanged."""
    config, _, mark = text.rpartition(LINE)
    return is_own(f"{project_root}\n{config}", mark.strip())


def not_trusted(place: object, file: str) -> ConfigError:
    """Return the error that this account did not sign what says which code a run, or a sweep, trains with.

    Args:
        place: Its folder, or its URL.
        file: The file there that names the code.
    """
    return ConfigError(
        f"{place} was created by another account or on another machine, or its {file} was changed: resuming runs the "
        "code it names.",
        "If you trust its author: --trust",
    )


def signing_key(mark: str) -> str:
    """Return what signs in the name of this account, where it was given along with ``mark``; empty if that is empty.

    Workers sign with it, which may be on machines that don't have the key of the account.
    """
    key = _read_key()
    return _mark(key, f"sign {mark}") if mark and key is not None else ""


def sign(key: str, text: str) -> str:
    """Return the signature of ``text`` by what ``signing_key`` returned; empty if that is."""
    return _mark(key.encode(), text) if key else ""


def is_signed(mark: str, text: str, signature: str) -> bool:
    """Tell whether ``text`` was signed by whom this account had given its signing key for ``mark``."""
    key = signing_key(mark)
    return bool(key) and hmac.compare_digest(sign(key, text).encode(), _bytes(signature))


def key_path() -> Path:
    """Return the place of the key.

    Raises:
        RuntimeError: The account has no home.
    """
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "rtrain" / "seal.key"


def _mark(key: bytes, text: str) -> str:
    return hmac.new(key, _bytes(text), "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    """Return the bytes of text from an untrusted file, such as JSON, which may contain lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def _read_key() -> bytes | None:
    """Return the key; None if there is none, or if others could have read or written it."""
    try:
        path = key_path()
        facts = path.stat()
        key = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    private = facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    return key if private and len(key) == KEY_BYTES else None


def _make_key() -> bytes | None:
    try:
        path = key_path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        # If two processes arrive at the same time, one creates the key and both use it.
        with suppress(FileExistsError):
            os.link(temporary, path)
        temporary.unlink()
    except (OSError, RuntimeError):  # a home that does not exist or can't be written
        return None
    return _read_key()
