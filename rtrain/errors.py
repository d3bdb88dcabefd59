"""Every error that rtrain raises on purpose. Each message gives the location and a hint."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rtrain.text.printable import printable

MAX_LINE = 1_000
"""Characters of a line that an error about a config shows."""
MAX_LINES = 200
"""Lines that it shows."""
MAX_LINES_OF_NOTEBOOK = 15


class RtrainError(Exception):
    """Base of all errors meant for the user; the CLI prints the message without a traceback.

    Args:
        message: What is wrong and where, in one or a few short lines.
        hint: What to do about it, best as a command or line that can be pasted.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.run_dir: Path | None = None
        """Path of the run that failed, or whose model was asked; None where nothing was started."""
        self.run: Any = None
        """That run, an ``rtrain.Run``, if the error comes from a function of ``rtrain``."""
        self.cause: BaseException | None = None
        """What the user's code raised."""

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n{self.hint}"

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the message alone says what is wrong and where."""
        lines = [printable(line, "\t") for line in f"{type(self).__name__}: {self}".split("\n")]
        if len(lines) <= MAX_LINES_OF_NOTEBOOK:
            return lines
        shown = lines[: MAX_LINES_OF_NOTEBOOK - 1]
        return [*shown, f"... {len(lines) - len(shown)} more lines: print(error) shows all of them"]


MOST_CHARACTERS = 2000
"""Of a message in a manifest or on a terminal."""
MOST_LINES = 6
"""Of the same."""
MOST_OF_TRACEBACK = 20_000
_COLOUR = re.compile(r"(?:\x1b|\\x1b)\[[0-9;]*m")
_BY_TENSORFLOW = re.compile(r"in user code:\n\n(?:    File .*\n(?: {8}.*\n)*)+\n    \w+: (.*)", re.DOTALL)
_BY_KERAS = re.compile(  # a KeyError shows its text as a literal, escaped
    r"['\"]?Exception encountered when calling .*?(?:\n|\\n){2}(?:\x1b|\\x1b)\[1m(.*?)(?:\x1b|\\x1b)\[0m", re.DOTALL
)
_BY_TORCH = re.compile(  # an error of a process that loads data, which another one raises again
    r"Caught \w+ (in .+?)\.\nOriginal (Traceback .*\n *File [^\n]*\n(?: +[^\n]*\n)*)[\w.]+(?:: (.*))?", re.DOTALL
)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text without its middle, if it has more than ``most`` characters; the logs have all of it."""
    if len(text) <= most:
        return text
    left_out = len(text) - most
    return f"{text[: most // 2]} [... {left_out:,} characters left out ...] {text[len(text) - most // 2 :]}"


def in_brief(message: str) -> str:
    """Return a message without its middle, if it has more than ``MOST_LINES`` lines or ``MOST_CHARACTERS``."""
    lines, kept = message.split("\n"), MOST_LINES // 2
    if len(lines) > MOST_LINES:
        message = "\n".join([*lines[:kept], f"[... {len(lines) - 2 * kept} lines left out ...]", *lines[-kept:]])
    return shortened(message)


def text_of(error: BaseException) -> str:
    """Return the text of an error; of one that can't say it, why."""
    try:
        return str(error)
    except Exception as other:
        return f"its text can't be read: its __str__ raised {type(other).__name__}"


def said_by(error: BaseException) -> str:
    """Return what an error says, without what a framework puts around the message of an error in user code."""
    text = text_of(error)
    for wrapper in (_BY_TENSORFLOW, _BY_KERAS):
        found = wrapper.match(text)
        text = text if found is None else found[1]
    text = _COLOUR.sub("", text)
    found = _BY_TORCH.match(text)
    return text if found is None else f"{(found[3] or '').strip()} ({found[1]})".strip()


def quoted_traceback(error: BaseException) -> str:
    """Return the traceback of another process that an error quotes; an empty text if it quotes none."""
    found = _BY_TORCH.match(text_of(error))
    return "" if found is None else found[2]


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, without its middle if it is long; its type if it says nothing.

    A line that ends in a colon announces the next one, which is then part of it.
    """
    first, *others = said_by(error).strip().split("\n")
    more = next((line.strip() for line in others if line.strip()), "") if first.rstrip().endswith(":") else ""
    return shortened(f"{first.rstrip()} {more}" if more else first) or type(error).__name__


class ConfigError(RtrainError):
    """The config, or what it asks for, is wrong; found before anything was started or written."""

    exit_code = 2

    def __str__(self) -> str:
        """Return the message and the hint, of names that are as long as a book their beginning."""
        return _bounded(super().__str__())


def _bounded(text: str) -> str:
    lines = text.split("\n")
    shown = [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}..." for line in lines[:MAX_LINES]]
    return "\n".join(shown if len(lines) <= MAX_LINES else [*shown, "..."])


class IdleKeyError(ConfigError):
    """A key is set that has no effect here."""


class TargetError(ConfigError):
    """A ``_target_``, or an argument of one, can't be.

    Args:
        key: Where it stands.
        problem: What is wrong.
        hint: What to do about it.
        fits: Tells whether another value may stand there.
    """

    def __init__(
        self, key: str, problem: str, hint: str | None = None, fits: Callable[[Any], bool] | None = None
    ) -> None:
        super().__init__(f"{key}: {problem}", hint)
        self.key, self.fits = key, fits


class NotInstalledError(ConfigError):
    """The config asks for a module that is not installed; the hint says how to install it."""


class DatasetError(ConfigError):
    """The data that the config names is missing, unreadable or not what the trainer needs."""


class MissingDataError(DatasetError):
    """There is nothing at a place that the config names.

    Args:
        message: What is missing.
        hint: What the folder has.
        place: The path or pattern, as it was looked for.
    """

    def __init__(self, message: str, hint: str | None, place: str) -> None:
        super().__init__(message, hint)
        self.place = place


class NotEnoughResourcesError(ConfigError):
    """The cluster can never give what the config asks for."""


class RunInUseError(ConfigError):
    """Another process writes the run directory that the config asks for."""


class StrangeFileError(ConfigError, OSError):
    """A link, a folder, a named pipe, a socket or a device stands where a file is expected."""


class ForbiddenFileError(ConfigError, PermissionError):
    """This account may not read a file."""


class DamagedSweepError(ConfigError):
    """``sweep.json`` is not whole; the runs of the trials may be."""


class RunDirError(RtrainError):
    """The run directory can't be written."""


class CheckpointError(RtrainError):
    """A checkpoint can't be written or read."""

    def __str__(self) -> str:
        """Return the message and the hint, of names in a file that are as long as a book their beginning."""
        return _bounded(super().__str__())


class TrainingError(RtrainError):
    """Training started and then failed; the run directory tells the whole story."""

    cause_type: str | None = None
    """Class of the exception that ended a worker in another process; None if ``__cause__`` is it."""


class NoRoomError(TrainingError):
    """The workers of a run did not start in time: others hold what they need."""


class PredictionError(RtrainError):
    """A prediction started and then failed; no output was written."""
