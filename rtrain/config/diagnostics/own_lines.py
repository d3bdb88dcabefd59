"""The user's own lines in a traceback: where an error comes from, without the frames of frameworks and of rtrain."""

from __future__ import annotations

import os
import re
import stat
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from rtrain.config.diagnostics.screen import MARGIN, MAX_WIDTH
from rtrain.config.files.locations import shown
from rtrain.config.secrets.masked_lines import masked_lines
from rtrain.config.secrets.redact import Redactor
from rtrain.config.secrets.urls import without_secrets
from rtrain.errors import first_line, quoted_traceback, text_of
from rtrain.text.wrapping import room

MOST_LINES = 3
"""Own frames that are shown: the innermost ones."""
MOST_ERRORS = 10
"""Of a chain of causes."""
MAX_SOURCE_BYTES = 4 << 20
INSTALLED = frozenset({"site-packages", "dist-packages"})
_OWN, _RTRAIN, _PYTHON = "", "rtrain", "Python"
_RTRAIN_FOLDER = Path(__file__).parents[2]
_PYTHON_FOLDERS = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
NO_SECRETS = Redactor()
_WRITTEN = re.compile(r'^ *File "(.+)", line (\d+),? in (.+)$', re.MULTILINE)
Place = tuple[str, int, str]
"""File, line and function."""


@dataclass(frozen=True)
class Line:
    """One frame of a traceback, with the line of its file; carets stand from ``start`` to ``end``."""

    file: str
    line: int
    function: str
    source: str = ""
    """The line without its indentation."""
    column: int = 0
    """Where in the file the carets begin, counted from 1; 0 if there are none."""
    start: int = 0
    end: int = 0

    def render(self) -> list[str]:
        """Return the place, the line, and the carets where the columns are known."""
        column = f":{self.column}" if self.column else ""
        function = f" in {self.function}" if self.function else ""
        out = [f"  --> {shown(Path(self.file))}:{self.line}{column}{function}"]
        if self.source:
            text, start, end = _within_width(self.source, self.start, self.end)
            out.append(f"  > {self.line:>4} | {text}")
            if start < end:
                out.append(f"         | {' ' * start}{'^' * (end - start)}")
        return out


def line_of_syntax(error: SyntaxError) -> Line:
    """Return the line that Python can't read."""
    text = (error.text or "").rstrip()
    start = max((error.offset or 1) - 1 - (len(text) - len(text.lstrip())), 0)
    return Line(error.filename or "", error.lineno or 0, "", text.strip(), error.offset or 0, start, start + 1)


def own_lines(error: BaseException, redact: Redactor = NO_SECRETS) -> dict[str, Any]:
    """Return where an error comes from, as plain data.

    Args:
        error: The error, and those that it was raised from. If it passed none of the user's lines, those of the error
            that was being handled are taken.
        redact: Takes the secrets of the config out of the lines.

    Returns:
        ``lines``: the user's own, innermost first, or the innermost one of a framework if there are none; ``own``:
        whether they are the user's; ``more``: how many more there are; ``folded``: number of other frames by package;
        ``causes``: type and message of each error that led to it, where the one before does not quote it.
    """
    errors = _told(error)
    traced = [frames for one in errors if (frames := list(_walk(one.__traceback__)))]
    with_own = [frames for frames in traced if any(_package(frame) == _OWN for frame in frames)]
    frames = [frame for part in reversed(with_own or traced[:1]) for frame in reversed(part)]
    own = [frame for frame in frames if _package(frame) == _OWN]
    chosen = own or [frame for frame in frames if _package(frame) != _RTRAIN][:1]
    places: dict[tuple[str, int], TracebackType] = {}
    for frame in chosen:
        places.setdefault((frame.tb_frame.f_code.co_filename, frame.tb_lineno), frame)
    told = list(places.values())[:MOST_LINES]
    counts = Counter(_package(frame) for frame in frames if frame not in told)
    num_own = counts.pop(_OWN, 0)
    lines = [asdict(_line(frame, redact)) for frame in told]
    quoted = lines_of(places_in(quoted_traceback(error))[::-1], redact)
    if quoted["own"]:  # of another process
        lines, own = [*quoted["lines"], *lines][:MOST_LINES], own or chosen
    facts = {"lines": lines, "own": bool(own), "more": num_own, "folded": dict(counts.most_common())}
    return {**facts, "causes": _causes(errors, redact)}


def render_lines(facts: Mapping[str, Any], *, folded: bool = True) -> list[str]:
    """Return what ``own_lines`` found as lines of text; ``folded``: with one line that counts the other frames."""
    out = [text for one in facts["lines"] for text in Line(**one).render()]
    out = [*(f"caused by {cause}" for cause in facts.get("causes", ())), *out]
    if not folded or not out:
        return out
    left_out = [f"{facts['more']} of your code"] if facts["more"] else []
    left_out += [f"{number} of {name}" for name, number in facts["folded"].items()]
    total = facts["more"] + sum(facts["folded"].values())
    if not total:
        return out
    counts = left_out[0] if len(left_out) == 1 else f"{total} ({', '.join(left_out)})"
    return [*out, f"  more frames: {counts}"]


def _told(error: BaseException) -> list[BaseException]:
    """Return an error and those that it was raised from; until the user's lines appear, also those being handled."""
    told, has_own = [error], False
    while len(told) < MOST_ERRORS:
        last = told[-1]
        if isinstance(last, BaseExceptionGroup):
            told.extend(last.exceptions[: MOST_ERRORS - len(told)])
            break
        has_own = has_own or any(_package(frame) == _OWN for frame in _walk(last.__traceback__))
        following = last.__cause__
        if following is None and not last.__suppress_context__ and not has_own:
            following = last.__context__
        if following is None:
            break
        told.append(following)
    return told


def _causes(errors: Sequence[BaseException], redact: Redactor) -> list[str]:
    """Return one line for each error but the first, unless what was said before quotes it."""
    said, out = text_of(errors[0]), []
    for one in errors[1:]:
        text = f"{type(one).__name__}: {first_line(one)}" if text_of(one).strip() else type(one).__name__
        if text not in said and first_line(one) != said.strip():
            out.append(_safe(text, redact))
        said = f"{said}\n{text}"
    return out


def _walk(frame: TracebackType | None) -> Iterator[TracebackType]:
    while frame is not None:
        if not frame.tb_frame.f_code.co_filename.startswith("<frozen"):
            yield frame
        frame = frame.tb_next


def _package(frame: TracebackType) -> str:
    return package_of(frame.tb_frame.f_code.co_filename)


def package_of(name: str) -> str:
    """Return the package that the code of a file is of; an empty text for code of the user's."""
    path = Path(name)
    for number, part in enumerate(path.parts[:-1]):
        if part in INSTALLED:
            return path.parts[number + 1].removesuffix(".py")
    if path.is_relative_to(_RTRAIN_FOLDER):
        return _RTRAIN
    if path.name.startswith("__autograph_generated_file"):
        return "tensorflow"
    is_python = name.startswith("<") or any(path.is_relative_to(folder) for folder in _PYTHON_FOLDERS)
    return _PYTHON if is_python else _OWN


def is_own(name: str) -> bool:
    """Return whether the code of a file is the user's own."""
    return package_of(name) == _OWN


def places_in(text: str) -> list[Place]:
    """Return the frames of a stack that is written out, in its order."""
    return [(file, int(line), function) for file, line, function in _WRITTEN.findall(text)]


def lines_of(places: Sequence[Place], redact: Redactor = NO_SECRETS) -> dict[str, Any]:
    """Return what ``own_lines`` does, of a stack that is written out.

    Args:
        places: Its frames, innermost first.
        redact: Takes the secrets of the config out of the lines.
    """
    own = [one for one in places if package_of(one[0]) == _OWN]
    told = (own or places[:1])[:MOST_LINES]
    counts = Counter(package_of(one[0]) for one in places if one not in told)
    num_own = counts.pop(_OWN, 0)
    lines = [asdict(_written_line(*one, redact)) for one in told]
    return {"lines": lines, "own": bool(own), "more": num_own, "folded": dict(counts.most_common()), "causes": []}


def _written_line(file: str, line: int, function: str, redact: Redactor) -> Line:
    """Return a place in a file, with its source and without carets."""
    source = _safe(_source(file, line), redact).strip()
    return Line(file=redact(file), line=line, function=redact(function), source=source)


def _line(frame: TracebackType, redact: Redactor) -> Line:
    code = frame.tb_frame.f_code
    number, last, start, end = next(islice(code.co_positions(), frame.tb_lasti // 2, None), (None,) * 4)
    text = _source(code.co_filename, frame.tb_lineno)
    shown_text = _safe(text, redact)
    place: dict[str, Any] = {
        "file": redact(code.co_filename),
        "line": frame.tb_lineno,
        "function": redact(code.co_name),
    }
    if shown_text != text or number != frame.tb_lineno or start is None or end is None:
        return Line(**place, source=shown_text.strip())
    indent = len(text) - len(text.lstrip())
    first = max(0, _characters(text, start) - indent)
    beyond = max(0, (_characters(text, end) if last == number else len(text.rstrip())) - indent)
    if text.strip() == text.strip()[first:beyond]:  # the carets would say nothing
        return Line(**place, source=text.strip())
    return Line(**place, source=text.strip(), column=indent + first + 1, start=first, end=beyond)


def _characters(text: str, num_bytes: int) -> int:
    return len(text.encode(errors="replace")[:num_bytes].decode(errors="replace"))


def _safe(text: str, redact: Redactor) -> str:
    """Return a line without what a terminal obeys, and without secrets, those in the source itself included."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    clean = without_secrets(redact(plain))
    return masked_lines(clean)[0][0] if '"' in clean or "'" in clean else clean


def _source(file: str, number: int) -> str:
    """Return a line of a text file; an empty text if the file is something else, or lacks the line."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            content = stream.read(MAX_SOURCE_BYTES)
    except (OSError, ValueError):
        return ""
    if b"\0" in content:
        return ""
    lines = content.splitlines()
    return lines[number - 1].decode(errors="replace") if 0 < number <= len(lines) else ""


def _within_width(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return the part of a line that fits, with what the carets point at."""
    most = room(MAX_WIDTH, MARGIN)
    left = 0 if end <= most else max(0, min(start - most // 4, len(text) - most))
    part = text[left : left + most]
    return part, start - left, min(end - left, len(part))
