"""The copies of runs in an object store, as rows of the list. They are read each time: no index holds them."""

from __future__ import annotations

from collections.abc import Iterator

from rtrain.history.places import Place
from rtrain.history.rows import Row, manifest_facts
from rtrain.runs.labels import FILE_NAME as LABELS
from rtrain.runs.labels import Labels, labels_of
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun, runs_below
from rtrain.storage.folders import open_folder, read_json
from rtrain.storage.stores import errors_named


def stored_rows(url: str) -> Iterator[Row]:
    """Yield the runs in a folder of a store: in it, or in the folders below it, as ``run.storage`` has them.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(url, "FOLDER"):
        home = patiently(lambda: open_folder(url))
        names = sorted(patiently(home.folders))
        for folder in (home, *(home.below(name) for name in names if name[0] != ".")):
            yield from map(_row, runs_below(folder))


def _row(run: StoredRun) -> Row:
    place = Place(run.folder.url, "run", "")
    return Row.of(place, manifest_facts(place, run.manifest, _labels(run)))


def _labels(run: StoredRun) -> Labels:
    """Return the labels of a copy, as they were when it was copied; those of a file that can't be read are none."""
    try:
        return labels_of(patiently(lambda: read_json(run.folder, LABELS)))
    except (FileNotFoundError, ValueError, TypeError):
        return Labels()
