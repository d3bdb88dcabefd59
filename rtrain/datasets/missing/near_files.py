"""Hints for missing data: similar names in the same folder, or how much other data it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath

from rtrain.config.did_you_mean import did_you_mean
from rtrain.config.files.data_files import ENDINGS

KIND_OF = {
    **{ending: kind for kind, endings in ENDINGS.items() for ending in endings},
    **dict.fromkeys((".npz", ".npy"), "numpy"),
    **dict.fromkeys((".tfrecord", ".tfrecords"), "tfrecord"),
    **dict.fromkeys((".png", ".jpg", ".jpeg"), "images"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "sql"),
    ".txt": "text",
    ".tar": "webdataset",
}
"""The dataset that reads files of an ending."""
MOST = 3
"""Maximum number of similar names in a hint."""


def hint_for(name: str, there: Iterable[str], folder: str) -> str:
    """Return what a missing name may mean, or else how many data files the folder has.

    Args:
        name: What was looked for; empty: any file of the dataset's kind.
        there: The names in the folder.
        folder: As it is shown; empty where names are shown alone.
    """
    names = sorted(one for one in there if not one.startswith("."))
    stems: dict[str, list[str]] = {}
    for one in names:  # most files end alike: that says nothing
        stems.setdefault(_stem(one), []).append(one)
    near = get_close_matches(_stem(name), stems, MOST)
    alike = sorted((one for stem in near for one in stems[stem]), key=lambda one: _kind(one) != _kind(name))
    close = alike[:MOST]
    if close:
        return did_you_mean(*(f"{folder}/{one}" if folder else one for one in close))
    kinds = Counter(kind for one in names if (kind := _kind(one)) is not None)
    if kinds:
        counted = ", ".join(f"{count} for dataset={kind}" for kind, count in kinds.most_common())
        return f"That folder has {kinds.total()} data file{'s' if kinds.total() > 1 else ''}: {counted}."
    return "That folder has no data files." if names else "That folder is empty."


def _stem(name: str) -> str:
    return name.partition(".")[0].casefold()


def _kind(name: str) -> str | None:
    return next((KIND_OF[one] for one in reversed(PurePosixPath(name.lower()).suffixes) if one in KIND_OF), None)
