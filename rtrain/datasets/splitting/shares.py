"""Which rows go to which split: seeded, stable, and per class where there are classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from rtrain.config.did_you_mean import there_are
from rtrain.datasets.base import Columns, num_rows_of, take
from rtrain.datasets.checked_columns import check_parts
from rtrain.datasets.conf import SharesConf, SplitConf
from rtrain.datasets.splitting.left_out import SPLITS
from rtrain.datasets.splitting.row_hash import random_numbers
from rtrain.errors import DatasetError

DEFAULT_TEST_SHARE = 0.2

KEY, TIME, NAMED, ROW = "split_key", "split_time", "split_named", "split_row"
"""Columns of rows that are still to be split: a name of the row, (rows,) uint64; its time, (rows,) float64; and the
place in ``SPLITS`` of the split that it says it belongs to, (rows,) int8. ``ROW``: its place before."""


def shares(conf: SplitConf, own: Collection[str]) -> dict[str, float]:
    """Return the share of the train rows that ``val`` and ``test`` take; 0 for a split that is left out.

    Args:
        conf: What the config says.
        own: The splits that the data brings itself; they are missing in the answer unless the config leaves them out.

    Raises:
        DatasetError: A share is asked for a split that the data brings itself, or nothing would be left to train on.
    """
    asked = {name: share for name, share in (("test", conf.test), ("val", conf.val)) if share is not None}
    for name, share in asked.items():
        if share and name in own:
            raise DatasetError(
                f"dataset.split.{name} takes {share:g} of the train rows, but the data already has a {name} split.",
                f"Remove dataset.split.{name}, or name only the train files in dataset.path.",
            )
    if "test" not in asked and not {"val", "test"} & set(own) and not asked.get("val"):
        asked["test"] = DEFAULT_TEST_SHARE
    if sum(asked.values()) >= 1:
        parts = " + ".join(f"{name} {share:g}" for name, share in asked.items())
        raise DatasetError(
            f"dataset.split: {parts} leaves nothing for train.", "The shares must add up to less than 1."
        )
    return asked


def split_rows(
    num_rows: int, taken: Mapping[str, float], seed: int, labels: np.ndarray | None, keys: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the rows of each split in ascending order.

    A split gets ``round(share * num_rows)`` rows, of each class within one row of its share. The answer depends only
    on the arguments.

    Args:
        num_rows: Rows to split.
        taken: Share of the rows for each split but ``train``, which gets the rest.
        seed: Decides which rows.
        labels: (num_rows,) classes, to split each alike; None to split without looking.
        keys: (num_rows,) uint64, names of the rows; None: their places.
    """
    order = _shuffled(num_rows, seed, labels, keys)
    rows = {}
    for name, share in taken.items():
        chosen = evenly(len(order), min(round(share * num_rows), len(order)))
        rows[name] = np.sort(order[chosen])
        order = order[~chosen]
    return {"train": np.sort(order), **rows}


def _shuffled(num_rows: int, seed: int, labels: np.ndarray | None, keys: np.ndarray | None) -> np.ndarray:
    """Return all rows in a random order, class after class where there are labels."""
    if keys is None:
        order = np.random.default_rng(seed).permutation(num_rows)
    else:
        order = np.argsort(random_numbers(seed, keys), kind="stable")
    return order if labels is None else order[np.argsort(labels[order], kind="stable")]


def evenly(num_rows: int, num_chosen: int) -> np.ndarray:
    """Return a mask, (num_rows,), that chooses exactly ``num_chosen`` rows, evenly spread."""
    steps = np.arange(num_rows + 1) * num_chosen // max(num_rows, 1)
    return np.diff(steps) > 0


def split_parts(parts: Mapping[str, Columns], conf: SharesConf, stratify: bool, way: str = "row") -> dict[str, Columns]:
    """Return the splits in memory: what the data brings itself, limited, and the shares that ``conf`` takes from train.

    Rows of one ``group`` stay together: then shares count groups, and ``limit`` takes whole ones.

    Args:
        parts: What the data brings. Rows may have a ``KEY``: then what is chosen depends on it, not on the rows' order.
        conf: The shares.
        stratify: Split each class alike, where rows are split one by one.
        way: ``row``; ``group``: rows of equal ``KEY`` stay together; ``hash``: by ``KEY`` alone; ``time``: by ``TIME``.

    Raises:
        DatasetError: The shares make no sense, or a split has no row.
    """
    if other := set(parts) - set(SPLITS):
        raise DatasetError(f"the source returns a split '{min(other)}'.", there_are(SPLITS))
    check_parts(parts, stratify=stratify)
    for part in parts.values():
        num_rows_of(part)
    taken = shares(conf.split, parts)
    asked = {name: share for name, share in taken.items() if share}
    check_way(way, asked, parts)
    stratify = stratify and way == "row"
    kept = {name: limited(part, conf, stratify, way) for name, part in parts.items() if name not in taken}
    train = kept["train"]
    if asked:
        kept |= {name: take(train, rows) for name, rows in _shared(train, asked, conf.seed, stratify, way).items()}
    units = _units(train, way)
    of = f"{len(train['y'])} rows" if units is None else f"{len(units[1])} groups"
    check_not_empty({name: len(part["y"]) for name, part in kept.items()}, asked, of, way)
    return {name: without_keys(kept[name]) for name in SPLITS if name in kept}


def without_keys(part: Columns) -> Columns:
    """Return the columns that a trainer takes."""
    return {name: values for name, values in part.items() if name not in (KEY, TIME, NAMED)}


def check_way(way: str, asked: Mapping[str, float], own: Collection[str]) -> None:
    """Raise a DatasetError if a column is to share out rows, and the data's own splits leave nothing to share."""
    if way != "row" and not asked and len(own) > 1:
        message = f"dataset.split.by_{way} splits the train rows, but the data already has {' and '.join(own)}."
        raise DatasetError(message, f"Leave dataset.split.by_{way} out, or set a share, e.g. dataset.split.val=0.1")


def _shared(train: Columns, asked: Mapping[str, float], seed: int, stratify: bool, way: str) -> dict[str, np.ndarray]:
    """Return the rows of each split."""
    if way in ("time", "hash"):
        numbers = random_numbers(seed, train[KEY]) if way == "hash" else train[TIME]
        ends = borders(asked, numbers if way == "time" else None)
        return {name: np.flatnonzero((numbers >= low) & (numbers < high)) for name, (low, high) in ends.items()}
    units = _units(train, way)
    if units is None:
        return split_rows(len(train["y"]), asked, seed, train["y"] if stratify else None, train.get(KEY))
    number, keys = units
    rows = split_rows(len(keys), asked, seed, None, keys if KEY in train else None)
    return {name: np.flatnonzero(np.isin(number, chosen)) for name, chosen in rows.items()}


def borders(asked: Mapping[str, float], times: np.ndarray | None = None) -> dict[str, tuple[float, float]]:
    """Return for each split the interval of numbers, the lower end among them, that makes a row belong to it.

    Args:
        asked: Share of the rows for each split but ``train``.
        times: (rows,) numbers of all rows, of which the largest are ``test`` and those before them ``val``; rows of
            equal numbers stay together. None: numbers are random in [0, 1), and ``test`` are the smallest.
    """
    low, high = float("-inf"), float("inf")
    found = {}
    if times is None:
        for name, share in asked.items():
            found[name] = low, max(low, 0.0) + share
            low = found[name][1]
        return {**found, "train": (low, high)}
    ordered, left = np.sort(times), len(times)
    for name, share in asked.items():
        left = max(left - round(share * len(times)), 0)
        low = min(high, ordered[left]) if left < len(ordered) else high
        found[name], high = (low, high), low
    return {**found, "train": (float("-inf"), high)}


def _units(part: Columns, way: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the number of each row's group and the keys of the groups; None if each row is for itself."""
    group = part.get("group")
    if way == "group" or (group is not None and KEY in part):
        keys, number = np.unique(part[KEY], return_inverse=True)
        return number, keys
    if group is None:
        return None
    number = np.cumsum(np.r_[False, group[1:] != group[:-1]])
    return number, np.arange(number[-1] + 1)


def limited(part: Columns, conf: SharesConf, stratify: bool, way: str) -> Columns:
    """Return as many rows as ``limit`` and ``sample`` say; of groups as many whole ones as fit, at least one."""
    num_rows = len(part["y"])
    most = num_wanted(num_rows, conf)
    if most == num_rows:
        return part
    units = _units(part, way)
    if units is None:
        order = _shuffled(num_rows, conf.seed, part["y"] if stratify else None, part.get(KEY))
        return take(part, np.sort(order[evenly(num_rows, most)]))
    number, keys = units
    order = _shuffled(len(keys), conf.seed, None, keys if KEY in part else None)
    count = max(1, int(np.searchsorted(np.cumsum(np.bincount(number)[order]), most, side="right")))
    return take(part, np.flatnonzero(np.isin(number, order[:count])))


def num_wanted(num_rows: int, conf: SharesConf) -> int:
    """Return how many of ``num_rows`` rows ``limit`` and ``sample`` leave.

    Raises:
        DatasetError: That would be less than one.
    """
    wanted = round(conf.sample * num_rows)
    if num_rows and not wanted:
        raise DatasetError(f"dataset.sample={conf.sample:g} of {num_rows} rows is less than one.", "Raise it.")
    return wanted if conf.limit is None else min(wanted, conf.limit)


def check_not_empty(num_rows: Mapping[str, int], asked: Mapping[str, float], of: str, way: str = "row") -> None:
    """Raise a DatasetError for a split without rows.

    Args:
        num_rows: Rows of each split.
        asked: The shares that were taken from train.
        of: What was shared out, ``10 rows`` say.
        way: How.
    """
    for name in (name for name, count in num_rows.items() if not count):
        share = f"{asked[name]:g} of {of}" if name in asked else f"what is left of {of}"
        if way == "time" and asked:
            message = f"split '{name}' is empty: equal times stay together, and none of {of} are left for it."
            raise DatasetError(message, "Use a finer column in dataset.split.by_time, or change the shares.")
        if way == "hash" and asked:
            message = f"split '{name}' is empty: no value of the split column falls into {share}."
            raise DatasetError(message, f"Change dataset.split.{name if name in asked else 'test'}, or dataset.seed.")
        if name in asked:
            message = f"split '{name}' is empty: {share} is less than one."
            raise DatasetError(message, f"Raise dataset.split.{name}, or use more rows: dataset.limit, dataset.sample.")
        raise DatasetError(f"split '{name}' has no rows.", "Check dataset.path, dataset.split, limit and sample.")
