"""Rows as trials: both values of a key in one sweep, and all rows of a table one after another on workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from acting_rows import STOPPED, Trained, key_of
from acting_runs import Runs, Watched

from rtrain.config import trials
from rtrain.config.compose.aliases import expand_word
from rtrain.config.compose.search_space import Axis, as_text

AGAIN = ("+vars.again=1",)
"""Of a run that repeats the one without any words."""


def swept_words(row: Trained, runs: Runs) -> tuple[str, ...]:
    """Return the words of a sweep whose second trial has the row's value, and its first one that of a run without."""
    first, *others = row.words
    return (*row.given, row.axis or _with_value_before(first, runs.of(row.given)), *others)


def _with_value_before(word: str, run: Watched) -> str:
    value = run.manifest.config
    for name in key_of(word).split("."):
        value = value[name]
    key, _, new = word.partition("=")
    return f"{key}={as_text(value)},{new}"


def words_on_workers(row: Trained) -> tuple[str, ...]:
    """Return the words of a row's run on workers."""
    return (*row.given, *(row.on_workers or row.words))


def is_for_workers(row: Trained) -> bool:
    """Tell whether what a row looks at can be seen of a run on workers, and differs there."""
    return row.on_workers is not None and not row.not_varied and STOPPED not in row.given


def trained_on_workers(runs: Runs, rows: list[Trained], workers: tuple[str, ...]) -> dict[tuple[str, ...], Watched]:
    """Return by their words the runs that rows compare: trials of one sweep, as its workers are started once.

    Each trial has words of its own, as with ``sweep.zip``.
    """
    wanted = [(), AGAIN, *(words for row in rows for words in (row.given, words_on_workers(row)))]
    words = list(dict.fromkeys(wanted))
    told = tuple(tuple(text for word in one for text in expand_word(runs.told(word))) for one in words)
    axis = Axis(key="sweep.zip", values=tuple(map(str, range(len(words)))), rows=told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.setattr(trials, "with_zip", lambda space, _: type(space)(fixed=space.fixed, axes=(axis,)))
        return dict(zip(words, runs.sweep((*workers, "sweep.name=on_workers")), strict=True))
