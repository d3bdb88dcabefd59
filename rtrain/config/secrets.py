"""Keep secrets out of what is written: masked by key, cut from URLs, environment variables left symbolic."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf, flag_override
from omegaconf.resolvers import oc

from rtrain.config.nodes import Container, children, words_of

MASK = "***"
_SECRET_KEY = re.compile(
    r"(^|[_-])(secret|password|passwd|passphrase|api_?key|access_?key|private_?key|credentials?)s?([_-]|$)|(^|[_-])token$",
    re.IGNORECASE,
)
_TEXT_TOKENS = re.compile(r"(pad|eos|bos|unk|sep|cls|mask|start|end|image|special)_token$", re.IGNORECASE)
_USERINFO = re.compile(
    r"(?<=://)(?!anonymous@)(?:(?<!abfs://)(?<!abfss://)[^/@\s'\":]+|[^/@\s'\":]*:(?!\d+[/?])[^@\s'\"]+)@"
)
"""User and password of a URL, which may hold a slash; Azure's container and ``gs://anonymous@`` are no users."""
_SIGNATURE = re.compile(
    r"([?&](?:[\w-]*(?:signature|token|secret|passwd|password|credential|(?:access|secret|api|private|account)_?key)|sig)=)[^&\s'\"]+",
    re.IGNORECASE,
)
_SIGNATURE_PARTS = re.compile(f"({_SIGNATURE.pattern})", re.IGNORECASE)
_PAIR = re.compile(r"""(['"]?)([\w\-]+)\1(\s*:\s*)('[^']*'|"[^"]*"|\[[^\]]*\]|[^,}\]\s{[][^,}\]]*)""")
_OPEN, _CLOSE = "\ue000", "\ue001"


@cache
def is_secret(key: str) -> bool:
    """Return whether a key is named like a secret."""
    return _SECRET_KEY.search(key) is not None and _TEXT_TOKENS.search(key) is None


def without_secrets(text: str) -> str:
    """Return text without the users, passwords and signatures of the URLs in it."""
    return _SIGNATURE.sub(rf"\1{MASK}", _USERINFO.sub("", text))


def secrets_in_url(text: str) -> list[str]:
    """Return the passwords and signatures of the URLs in ``text``; of a user without a password, the user."""
    users = [found.removesuffix("@").partition(":") for found in _USERINFO.findall(text)]
    signed = [found[0].removeprefix(found[1]) for found in _SIGNATURE_PARTS.findall(text)]
    return [password if colon else user for user, colon, password in users] + signed


def mask_value(key: str, value: Any) -> Any:
    """Return a scalar as it may be written under ``key``; a reference to another value stays."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret(key) and not (isinstance(value, str) and (value.startswith("${") or not value)):
        return MASK
    return without_secrets(value) if isinstance(value, str) else value


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
    if equals and is_secret(key.lstrip("+~").rpartition(".")[2]) and value and not value.startswith("${"):
        return f"{key}='{MASK}'"
    masked = _PAIR.sub(lambda pair: _mask_pair(*pair.group(1, 2, 3, 4)), value)
    return without_secrets(f"{key}{equals}{masked}")


def masked_config(cfg: DictConfig) -> DictConfig:
    """Return a copy of a composed config, its node ``hydra`` included, without secrets."""
    masked = copy.deepcopy(cfg)
    mask_in_place(masked)
    return masked


def mask_in_place(masked: DictConfig) -> None:
    """Take the secrets out of a composed config."""
    with flag_override(masked, ["readonly", "struct"], False):
        _mask_nodes(masked)
        smoke = masked.get("smoke")
        if isinstance(smoke, DictConfig) and "overrides" in smoke:
            smoke.overrides = [mask_word(word) for word in words_of(smoke.overrides)]
        hydra = masked.hydra
        with flag_override(hydra, ["readonly", "struct"], False):
            words = words_of(hydra.overrides.task)
            hydra.overrides.task = [mask_word(word) for word in words]
            hydra.overrides.hydra = [mask_word(word) for word in words_of(hydra.overrides.hydra)]
            hydra.job.env_set = dict.fromkeys(hydra.job.env_set, MASK)
            dirname: Any = hydra.job._get_node("override_dirname")
            dirname = dirname._value()
            for word in words:
                dirname = dirname.replace(word, mask_word(word))
            hydra.job.override_dirname = dirname


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


def _mask_pair(quote: str, key: str, colon: str, value: str) -> str:
    shown = f"'{MASK}'" if is_secret(key) and not value.startswith("${") else value
    return f"{quote}{key}{quote}{colon}{shown}"


def _mask_nodes(node: Container, key: str = "") -> None:
    """Mask the scalars below ``node`` in place; the items of a list go by the key of the list."""
    for name, _, child in children(node):
        own = name if isinstance(node, DictConfig) else key
        if isinstance(child, Container):
            _mask_nodes(child, own)
            continue
        value = child._value()
        masked = mask_value(own, value)
        if masked is not value and masked != value:
            with flag_override(child, "readonly", False):
                child._set_value(masked)
