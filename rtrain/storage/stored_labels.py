"""The labels of a run or a sweep in a store: ``labels.json`` next to its record."""

from __future__ import annotations

from collections.abc import Callable

from rtrain.runs.labels import LABELS, Labels, labels_of, labels_to_change
from rtrain.storage.access import patiently
from rtrain.storage.folders import Folder, read_json


def read_labels(folder: Folder) -> Labels:
    """Return the labels of a copy; those of a file that can't be read are none. It raises what the store says."""
    try:
        return labels_of(patiently(lambda: read_json(folder, LABELS)))
    except (FileNotFoundError, ValueError, TypeError):
        return Labels()


def change_labels(folder: Folder, change: Callable[[Labels], Labels]) -> None:
    """Replace the labels of a copy. It raises what the store says.

    A store has no locks: of two accounts that do so in the same moment, the last one wins.

    Raises:
        RunDirError: The labels can't be read.
    """
    before = labels_to_change(lambda: patiently(lambda: read_json(folder, LABELS)), folder.url)
    content = change(before).as_text().encode()
    patiently(lambda: folder.put(LABELS, [content]))
