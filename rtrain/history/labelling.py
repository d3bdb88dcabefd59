"""The labels of one run, trial or sweep, wherever it is: here, or in a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtrain.history.index import read_row
from rtrain.history.references import existing_run
from rtrain.history.rows import Row
from rtrain.runs import labels
from rtrain.storage.stores import is_url


def existing_place(text: str) -> str:
    """Return the folder of the run or sweep that a word stands for; a URL stays as it is.

    Raises:
        ConfigError: It is one of several runs, or none.
    """
    return text if is_url(text) else str(existing_run(text))


def row_at(place: str) -> Row:
    """Return the run, trial or sweep in a folder, or at a URL; of that, only the record is read.

    Raises:
        ConfigError: There is none at the URL, or the store refuses or does not answer.
        RtrainError: There is none in the folder.
    """
    if not is_url(place):
        return read_row(Path(place))
    from rtrain.history import stored  # only where it is needed: it imports pyarrow

    return stored.row_at(place)


def relabel(place: str, change: Callable[[labels.Labels], labels.Labels]) -> Row:
    """Replace the labels of a run, trial or sweep, and return it as it is then.

    Raises:
        ConfigError: The store refuses or does not answer.
        RtrainError: The folder can't be written.
    """
    if not is_url(place):
        labels.change_labels(read_row(Path(place)).path, change)
    else:
        from rtrain.history import stored

        stored.relabel(place, change)
    return row_at(place)
