"""How a key and its value are typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from omegaconf import ListConfig, ValueNode

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key
from rtrain.config.diagnostics.meant.examples import first_of
from rtrain.config.did_you_mean import alike

_PAIRS = re.compile(r"[A-Za-z_]\w*:[^\s:,{}\[\]]+(,[A-Za-z_]\w*:[^\s:,{}\[\]]+)*")
"""A mapping without braces: ``patience:3``."""
PARAMS = "sweep.params."
"""What stands before a key that a sweep varies."""
_INNERMOST = re.compile(r"[\[{(][^\[\]{}()]*[\]})]")
_RANGES = ("choice(", "range(", "interval(", "glob(", "tag(", "shuffle(", "sort(")


def spellings(sign: str, key: str, value: str | None, default: Any, *, is_built: bool, keeps: bool) -> Iterator[str]:
    """Yield the words that may set ``key``: as a list or not like its default, as an option, as it is, as a class.

    Args:
        sign: The typed sign.
        key: As it is to be shown.
        value: The typed or intended value.
        default: The value of the key without the override.
        is_built: Whether the name means a class.
        keeps: Whether that class accepts the existing arguments.
    """
    if value is None:
        yield f"{sign}{key}"
        return
    is_list = value.startswith("[")
    if isinstance(default, ListConfig) and not is_list:
        yield f"{sign}{key}={first_of(default, value) or f'[{value}]'}"
    if isinstance(default, ValueNode) and is_list and "," not in value:
        yield f"{sign}{key}={value[1:-1]}"
    group = {"trainer.type": "trainer", "sweep.type": "sweep", "dataset.type": "dataset"}.get(key)
    if group is not None or key == "sweep.scheduler":
        yield f"{group or 'sweep/scheduler'}={value}"
    if key == "trainer.type":  # by itself, it would leave the keys of another trainer
        return
    yield f"{sign}{key}={value}"
    yield f"+{key}={value}"
    if _PAIRS.fullmatch(value):
        yield f"{sign}{key}={{{value.replace(':', ': ')}}}"
    if is_built and "." in value and value.replace(".", "").isidentifier():
        if keeps:
            yield f"{key}._target_={value}"
        yield f"{key}={{_target_: {value}}}"
    yield f"{sign}{key}=[{value}]"


def of_sweeper(word: str) -> str | None:
    """Return the word that varies what Hydra's sweeper would: ``lr=1,2`` for ``hydra.sweeper.params.lr=1,2``."""
    match = re.fullmatch(r"\+*hydra\.sweeper\.params\.(.+=.+)", word)
    return match[1] if match else None


def varies(word: str) -> bool:
    """Return whether a word gives several values, or a range of them."""
    value = word.partition("=")[2]
    while (inner := _INNERMOST.sub("", value)) != value:
        value = inner
    return "," in value or word.partition("=")[2].startswith(_RANGES)


def in_own_words(typed: str, key: str, full: str) -> str:
    """Return ``full`` as the user would type it.

    It has the short name that they used for its beginning; where they gave no section, its own short name.
    """
    if typed.startswith(PARAMS) and not full.startswith(PARAMS):
        return PARAMS + in_own_words(typed.removeprefix(PARAMS), key, full)
    head = typed.partition(".")[0]
    if (head in GROUPS or head in KEYS) and full.startswith(f"{expand_key(head)}."):
        return head + full[len(expand_key(head)) :]
    if "." in typed:
        return full.replace("trainer.", "", 1) if full.replace(".", "/") in GROUPS.values() else full
    shorts = [(short, expand_key(short)) for short in (*KEYS, *GROUPS)]
    return next((s + full[len(own) :] for s, own in shorts if f"{full}.".startswith(f"{own}.")), full)


def no_key(key: str, full: str | None) -> str:
    """Return the message for an unknown ``key`` of a file; ``full`` is what was meant, if that is known."""
    return f"{key}: there is no key '{(_differing(key, full) or (key.rpartition('.')[2], ''))[0]}' here"


def short_of(key: str, full: str) -> str:
    """Return the one part of ``full`` that differs from ``key``; all of it if it belongs elsewhere."""
    found = _differing(key, full)
    return found[1] if found is not None else full


def _differing(key: str, full: str | None) -> tuple[str, str] | None:
    """Return the one part that differs, as it is and as it is meant; None where a right section is another one."""
    parts, other = key.split("."), (full or "").split(".")
    different = [pair for pair in zip(parts, other, strict=False) if pair[0] != pair[1]]
    if len(parts) != len(other) or len(different) != 1:
        return None
    is_last = parts[:-1] == other[:-1]
    return different[0] if is_last or alike(different[0][0], [different[0][1]]) is not None else None
