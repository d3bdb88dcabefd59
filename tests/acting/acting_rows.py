"""Rows of the tables that prove that keys act: what is typed, and what of the run is another then.

A row that trains compares two runs that share all words but its own: were the key ignored, they would be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from rtrain.runs.run import Run

Look = Callable[[Run], Any]
"""Reads what a run leaves, beside its config: that is another one in any case, and proves nothing."""


STOPPED = "SIGTERM"
"""Stands among the given words where the process is told to end at the second step."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A key that changes what a run leaves."""

    words: tuple[str, ...]
    """What sets it."""
    look: Look
    """What differs then."""
    given: tuple[str, ...] = ()
    """What both runs have besides the base: what the key needs."""
    beside: tuple[str, ...] = ()
    """Words of other rows that share the changed run; none of them changes what ``look`` sees."""
    axis: str = ""
    """The word of a sweep that varies the key, where its value in a run without it won't do: it may have none."""
    not_varied: str = ""
    """What a sweep says that can't vary the key: a pattern."""
    on_workers: tuple[str, ...] | None = ()
    """What sets it on workers, if other words; None: ``look`` sees nothing there."""
    slow: bool = False

    @property
    def key(self) -> str:
        """The key that it sets, or one within it."""
        return key_of(self.words[0])


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A key that a check reads: a value that can't be is refused, before anything is written."""

    words: tuple[str, ...]
    because: str
    """What the message says: a pattern."""

    @property
    def key(self) -> str:
        """The key that it sets."""
        return key_of(self.words[0])


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Keys of which another test shows that they act."""

    key: str
    test: str
    """The file, below the repository, and the test in it or in a class it inherits from."""


Row = Trained | Refused | Shown


def acts(*words: str, on: Look, **more: Any) -> Trained:
    """Return the row of the key that the first word sets; ``on`` reads what differs. ``more`` are fields of the row."""
    return Trained(words=words, look=on, **more)


def refused(*words: str, because: str) -> Refused:
    """Return the row of a key that is shown to be read by what is refused."""
    return Refused(words=words, because=because)


def shown(test: str, *keys: str) -> list[Shown]:
    """Return the rows of keys that another test shows to act."""
    return [Shown(key=key, test=test) for key in keys]


def together(*rows: Trained) -> list[Trained]:
    """Let rows share one changed run; each still differs by its own word alone, which a slow test checks."""
    given = tuple(dict.fromkeys(word for row in rows for word in row.given))
    return [
        replace(row, given=given, beside=tuple(word for other in rows if other is not row for word in other.words))
        for row in rows
    ]


def slow(rows: Iterable[Trained]) -> list[Trained]:
    """Leave rows to ``make test-all``."""
    return [replace(row, slow=True) for row in rows]


def key_of(word: str) -> str:
    """Return the key that a word sets."""
    return word.lstrip("+~").partition("=")[0].replace("/", ".")
