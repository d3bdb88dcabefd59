"""Lines of a config as an error may show them: without what stands under keys that are named like secrets."""

from __future__ import annotations

import re

from rtrain.config.secrets.masked import mask_value
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.urls import MASK, secrets_in_url, without_secrets

_KEY = re.compile(r"(?<![\w\-])([\w\-]+)['\"\\]*\s*[:=]\s*|^\s*(?:- +)*([\w\-]+)\s+")
"""At the beginning of a line, which may be no YAML, the colon may lack."""
_BLOCK = re.compile(r"[|>][+\-\d]*\s*(?:#.*)?|#.*|[&!]\S*\s*")
"""What stands after a key whose value begins in the next line."""
_WORD = re.compile(r"[^\s,\[\]{}'\"]+")
MIN_LENGTH = 6
"""Shorter values are parts of too many other words of a message."""


def masked_lines(text: str) -> tuple[list[str], set[str]]:
    """Return the lines of a text, which may be no YAML, without secrets, and the words that they had instead."""
    lines, hidden = list[str](), set[str]()
    depth: int | None = None
    is_open = False
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        inside = depth is not None and (indent > depth or (is_open and indent == depth and line[indent:][:1] == "-"))
        if inside or not line.strip():
            shown = line[:indent] + (MASK if line.strip() else "")
            hidden.update(_words(line))
        else:
            depth, is_open, shown = None, False, without_secrets(line)
            hidden.update(secrets_in_url(line))
            end = _end_of_secret_key(line)
            if end is not None:
                value = line[end:].strip()
                depth, is_open = indent + len(line[indent:]) - len(line[indent:].lstrip("- ")), not value
                is_open = is_open or _BLOCK.fullmatch(value) is not None
                kept = mask_value("", value, secret=True) if not is_open else value
                shown = line[:end] + kept
                hidden.update(_words(value) if kept != value else ())
        lines.append(shown)
    return lines, hidden


def masked_diff(diff: str) -> str:
    """Return a diff of text files without what stands under keys that are named like secrets."""
    lines = diff.split("\n")
    shown, _ = masked_lines("\n".join(line[1:] for line in lines))
    return "\n".join(line[:1] + bare for line, bare in zip(lines, shown, strict=True))


def masked_message(message: str, hidden: set[str]) -> str:
    """Return a message without the words that are hidden; a short one only where it is quoted."""
    for word in sorted(hidden, key=len, reverse=True):
        message = message.replace(f"'{word}'", f"'{MASK}'")
        message = message.replace(word, MASK) if len(word) >= MIN_LENGTH else message
    return message


def _end_of_secret_key(line: str) -> int | None:
    return next((found.end() for found in _KEY.finditer(line) if is_secret(found[1] or found[2])), None)


def _words(value: str) -> set[str]:
    words = (word for word in _WORD.findall(value) if not word.endswith(":"))
    return {value.strip().strip("'\""), *words} - {"", "-", "|", ">", "#"}
