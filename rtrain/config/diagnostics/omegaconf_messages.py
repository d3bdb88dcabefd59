"""OmegaConf's messages, and values, in plain words."""

from __future__ import annotations

import re
from traceback import walk_tb
from typing import Any

NO_MAPPING = "must be a mapping"
MIXED = "a mapping can't be merged with a list"
TOO_DEEP = "refers to itself, or is nested too deep"
_WORDS: tuple[tuple[str, str], ...] = (
    (r"Value '(.*)' of type '\w+' could not be converted to Integer", "must be a whole number, not {0}"),
    (r"Value '(.*)' of type '\w+' could not be converted to Float", "must be a number, not {0}"),
    (
        r"Value '(.*)' of type '\w+' could not be converted to Seconds",
        "must be a number of seconds, or a duration such as 90s, 5m or 1h30m, not {0}",
    ),
    (
        r"Value '(.*)' of type '\w+' could not be converted to Bytes",
        "must be a number of bytes, or a size such as 500MB or 2GiB, not {0}",
    ),
    (r"Value '(.*)' is not a valid bool \(type .*\)", "must be true or false, not {0}"),
    (r"Value '(.*)' of type '.*' is incompatible with type hint '(.*)'", "must be {type}, not {0}"),
    (r"Invalid type assigned: NoneType is not a subclass of (?:str|int|float|bool)\. value: (.*)", "can't hold null"),
    (
        r"(?:Invalid type assigned|Merge error): (\w+) is not a subclass of \w+\. value: (.*)",
        "must be a mapping, not {1}",
    ),
    (r"Cannot assign (\w+) to (?:Dict|dict)\[.*", NO_MAPPING),
    (r"Invalid value assigned: \w+ is not a ListConfig, list or tuple\.", "must be a list"),
    (r"Cannot convert '(\w+)' to string: '(.*)'", "must be text, not {1}"),
    (r"field '.*' is not Optional", "can't be null"),
    (r"Incompatible value '(.*)' for field of type '.*'", "can't be {0}"),
    (r"Cannot merge DictConfig with ListConfig", MIXED),
    (r"'(\w+)' is not .*a (dict|list).*", "can't be {0}"),
    (r"Unsupported interpolation type (\S+)", "there is no resolver {0}"),
    (r"Interpolation key '(.*)' not found", "refers to {0}, which does not exist"),
    (r"Missing mandatory value: .*", "refers to a required value that is missing"),
    (r".*MissingMandatoryValue.*", "refers to a required value that is missing"),
    (r".*Environment variable '(.*)' not found.*", "refers to the environment variable {raw}, which is not set"),
    (r".*Recursive interpolation.*", "refers to itself"),
    (r".*maximum recursion depth.*", TOO_DEEP),
    (r"(?:\w+ raised while resolving interpolation: )(.*)", "can't be resolved: {raw}"),
    (r"(?:missing|mismatched|extraneous|no viable|token).*", "can't be read as a reference: check its ${{...}}"),
)
MAX_SHOWN = 57
"""Most characters of a value that are shown."""
_HINTS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}

_VARIABLE = re.compile(
    r"\$([A-Z_][A-Z0-9_]+)\b|refers to '([A-Z_][A-Z0-9_]+)'|no resolver '(?:env|environ|getenv)'", re.ASCII
)
"""A value, or a message about one, that means a variable of the environment."""


def plain_words(message: str) -> str:
    """Return the first line of a message of OmegaConf in plain words."""
    first = message.strip().partition("\n")[0].strip()
    inner = re.fullmatch(r"While dereferencing interpolation '(.*)': (.*)", first)
    if inner:
        problem = plain_words(inner[2])
        if "oc.env:" in inner[1]:  # what a variable holds is not for all eyes
            return f"{problem.partition(', not ')[0]}, and {inner[1]} gives something else"
        return f"{problem}, which {inner[1]} gives"
    for pattern, words in _WORDS:
        match = re.fullmatch(pattern, first)
        if match:
            groups = match.groups()
            hint = groups[1] if len(groups) > 1 else ""
            return words.format(*map(_shown, groups), raw=groups[0] if groups else "", type=_HINTS.get(hint, hint))
    return first


def reference_problem(error: Exception) -> str:
    """Return why an interpolation can't be resolved."""
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        return "refers to itself"
    return plain_words(str(error))


def missing_reference(error: Exception) -> str | None:
    """Return the key that an interpolation names and the config lacks; None if something else is wrong."""
    found = re.match(r"Interpolation key '([\w.]+)' not found", str(error))
    return found[1] if found is not None else None


def of_environment(text: str) -> str | None:
    """Return the line that says how a config names a variable of the environment, if ``text`` tries it another way."""
    found = _VARIABLE.search(text)
    name = (found[1] or found[2] or "NAME") if found is not None else None
    return f"an environment variable is ${{oc.decode:${{oc.env:{name}}}}}" if name is not None else None


def _shown(value: str) -> str:
    value = value.lower() if value in ("True", "False") else "null" if value == "None" else value
    text = value if len(value) <= MAX_SHOWN + 3 else f"{value[:MAX_SHOWN]}..."
    return text if re.fullmatch(r"[\d.eE+\-]+|true|false|null|None|\[.*|\{.*|'.*'", text) else f"'{text}'"


def as_written(value: Any) -> str:
    """Return a value as a config has it; of a long one the beginning."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def merged_keys(error: BaseException) -> list[tuple[str, Any]]:
    """Return the keys at which OmegaConf gave up merging two configs, which its error lacks, and what is there."""
    frames = [frame.f_locals for frame, _ in walk_tb(error.__traceback__) if frame.f_code.co_name == "_map_merge"]
    return [(str(one["key"]), one["dest_node"]) for one in frames if "dest_node" in one]
