"""Which keys, environment variables and parameters of a URL are named like secrets."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of a name: ``DBPassword``, ``db-password2`` and ``DB_PASSWORD`` have the same two."""
_SECRET = re.compile(
    r"(?:^|_)(?:"
    r"(?:[a-z]*(?:password|passwd|passphrase|passcode|apikey|accesskey|secretkey|privatekey|accountkey|clientsecret)"
    r"|secret|credential|cred|jwt|dsn|pwd|pgpass|connection_?string|conn_?str"
    r"|(?:api|access|private|account|secret|signing|encryption|auth|ssh|deploy|webhook|subscription)_key)s?(?:_|$)"
    r"|(?:db|sql|smtp|ftp|user|mail|email|redis|root|admin|proxy|ssh|login)_pass$"
    r"|(?:github|gitlab|gh|git|azure|ado|devops|bitbucket|jira)_pat$"
    r"|(?:hf|api|auth|access|bearer|refresh|session|id)?token$"
    r"|(?:hf|api|auth|access|bearer|refresh|secret)_?tokens$"
    r"|authorization$)"
)
_TEXT_TOKEN = re.compile(
    r"(?:^|_)(?:pad|padding|eos|bos|unk|sep|cls|mask|start|end|begin|stop|image|video|audio|special|class|delimiter|blank"
    r"|boundary|dist|register|num|n|max|min|per|first|last|new|next|prev|previous|single|prompt|word)_token$"
)
"""A piece of text that a model reads, or a number of them."""
_NO_SECRETS = ("PWD", "OLDPWD")
"""Variables that every shell sets."""
_PARAMETER_WORDS = ("sig", "signature", "sas", "key", "code", "auth")
"""Last words of parameters that hold secrets in a URL, and need not where they are keys of a config."""
_BETWEEN_KEYS = re.compile(r"[^\w\-]+")


@lru_cache(maxsize=4096)
def is_secret(key: str) -> bool:
    """Return whether a key is named like a secret."""
    name = "_".join(_WORD.findall(key)).lower()
    return _SECRET.search(name) is not None and key not in _NO_SECRETS and _TEXT_TOKEN.search(name) is None


def is_in_secret(path: str) -> bool:
    """Return whether a full key, or one that it lies below, is named like a secret."""
    return any(map(is_secret, _BETWEEN_KEYS.split(path)))


@lru_cache(maxsize=4096)
def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of a URL is named like a secret."""
    return (
        is_in_secret(name)
        or name.lower() == "tokens"
        or any(word.lower() in _PARAMETER_WORDS for word in _WORD.findall(name)[-1:])
    )
