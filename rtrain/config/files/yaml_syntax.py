"""Text that isn't a YAML mapping: the line at which it goes wrong, and how the line should be."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from rtrain.config.diagnostics.screen import FileLocation, render
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.secrets.names import is_secret
from rtrain.errors import ConfigError

_HINTS = (
    (r"<stream end>|end of stream", "a closing bracket, brace or quote is missing before the end of the file"),
    (r"another document", "a file can contain only one config: remove this '---' and everything after it"),
    (r"undefined alias", "an alias needs its anchor, &NAME, above it; quote text that starts with *"),
    (r"expected alphabetic or numeric", "quote text that starts with * or &: '*.csv'"),
    (r"cannot start any token", "quote text that starts with a special character"),
    (r"unknown escape", "write a path with / or in single quotes: a backslash in double quotes starts an escape"),
    (r"could not determine a constructor", "a config can't contain tags; ${oc.env:NAME} reads an environment variable"),
    (r"unhashable key", "a template isn't YAML; quote text that starts with {"),
    (r"but got|expected ','", "a comma, or a closing bracket or brace, is missing here or above"),
    (r"mapping values are not allowed", "write 'key: value' on a separate line, and quote text that contains a colon"),
    (
        r"expected <block end>|could not find expected ':'",
        "check the indentation and the ':' of this line and the one above",
    ),
)
"""What PyYAML's problem says -> what to do about it."""
_NO_SPACE = re.compile(r"(\s*)([\w.]+)(?::|\s*=\s*)([^\s:=/\\].*)")
"""A line with ``key:value`` or ``key = value``."""
_OF_PYTHON = re.compile(r"^(?:import |from \w[\w.]* import |def |class |@\w)", re.MULTILINE)
_OF_TOML = re.compile(r"^\[[\w.\"'-]+\]\s*$", re.MULTILINE)


def syntax_error(path: Path, text: str, error: yaml.MarkedYAMLError) -> ConfigError:
    """Return what is wrong with a text that PyYAML can't read, at the line that is to blame."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ConfigError(f"{shown(path)} is not valid YAML: {error.problem}")
    foreign = _of_another_language(text)
    if foreign is not None:
        return ConfigError(f"{shown(path)} is {foreign}, not YAML.", "  " + to_try("key: value, one per line"))
    lines = text.split("\n")
    number = min(mark.line, len(lines) - 1)
    line = lines[number]
    if "\t" in line[: mark.column + 1]:
        spot = FileLocation(shown(path), text, number, line.index("\t"), 1)
        return ConfigError(render("YAML forbids tabs as indentation", spot=spot), "  " + to_try("two spaces instead"))
    for at in (number, number - 1):
        fixed = spaced(lines[at]) if at >= 0 and "expected <block end>" not in (error.problem or "") else None
        if fixed is not None:
            return unspaced(FileLocation(shown(path), text, at, len(lines[at]) - len(lines[at].lstrip()), 1), fixed)
    if (conflict := next((at for at in range(len(lines)) if lines[at].startswith("<<<<<<<")), None)) is not None:
        spot = FileLocation(shown(path), text, conflict, 0, 7)
        return ConfigError(render("the file contains a merge conflict", spot=spot), "  keep one of its two sides")
    problem = (error.problem or "").removeprefix("but ")
    problem = "the file ends too early" if "'<stream end>'" in problem else problem
    spot = FileLocation(shown(path), text, number, mark.column, 1)
    return ConfigError(render(f"invalid YAML: {problem}", spot=spot), _hint(error, lines, number))


def no_mapping(path: Path, text: str, spot: FileLocation, data: object) -> ConfigError:
    """Return what is wrong with a file that holds something else than a mapping."""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    foreign, fixed = _of_another_language(text), spaced(first)
    if foreign is None and fixed is not None:
        return unspaced(spot, fixed)
    message = f"{shown(path)} is not a mapping of keys to values" if foreign is None else f"{shown(path)} is {foreign}"
    hint = "remove the dashes" if isinstance(data, list) and foreign is None else None
    return ConfigError(render(message, spot=spot), f"  {hint}" if hint else "  " + to_try("key: value, one per line"))


def spaced(line: str) -> str | None:
    """Return ``key: value`` for a line that lacks the space after its colon, or has another sign; else None."""
    match = _NO_SPACE.fullmatch(line.rstrip())
    return f"{match[2]}: {'...' if is_secret(match[2]) else match[3]}" if match is not None else None


def unspaced(spot: FileLocation, fixed: str) -> ConfigError:
    """Return the error about a line without a colon and a space, with the line as it should be."""
    message = "a key ends with a colon and a space"
    return ConfigError(render(message, spot=spot), "  " + to_try(fixed))


def _hint(error: yaml.MarkedYAMLError, lines: list[str], number: int) -> str | None:
    above = next((line for line in reversed(lines[:number]) if line.strip()), "")
    indents = [len(one) - len(one.lstrip()) for one in (above, lines[number])]
    if "mapping values" in (error.problem or "") and indents[1] > indents[0] and re.search(r":\s+\S", above):
        return f"  indent this line like the one above: {indents[0]} spaces, not {indents[1]}"
    if "expected <block end>" in (error.problem or "") and indents[1] != indents[0]:
        return f"  check the indentation: this line has {indents[1]} spaces, the one above {indents[0]}"
    if re.search(r"[\[{,:] *\$\{", lines[number]) and "'{'" in (error.problem or ""):
        return '  quote a reference inside of braces or brackets: "${vars.name}"'
    return next((f"  {words}" for pattern, words in _HINTS if re.search(pattern, error.problem or "")), None)


def _of_another_language(text: str) -> str | None:
    if _OF_PYTHON.search(text):
        return "Python code"
    return "TOML or INI" if _OF_TOML.search(text) else None
