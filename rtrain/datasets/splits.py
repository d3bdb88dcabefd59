"""Which rows go to which split: seeded, stable, and per class where there are classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rtrain.datasets.base import Columns
from rtrain.datasets.conf import SharesConf, SplitConf
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

DEFAULT_TEST_SHARE = 0.2
SPLITS = ("train", "val", "test")


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
                f"dataset.split.{name} asks for {share:g} of the train rows, but the data has its own {name} split.",
                f"Remove dataset.split.{name}, or name the train files alone in dataset.path.",
            )
    if "test" not in asked and not {"val", "test"} & set(own) and not asked.get("val"):
        asked["test"] = DEFAULT_TEST_SHARE
    if sum(asked.values()) >= 1:
        parts = " + ".join(f"{name} {share:g}" for name, share in asked.items())
        raise DatasetError(f"dataset.split: {parts} leaves nothing for train.", "Let the shares add up to less than 1.")
    return asked


def split_rows(
    num_rows: int, taken: Mapping[str, float], seed: int, labels: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Return the rows of each split in ascending order.

    A split gets ``round(share * num_rows)`` rows, of each class within one row of its share. The answer depends only
    on the arguments.

    Args:
        num_rows: Rows to split.
        taken: Share of the rows for each split but ``train``, which gets the rest.
        seed: Decides which rows.
        labels: (num_rows,) classes, to split each alike; None to split without looking.
    """
    import numpy as np

    order = _shuffled(num_rows, seed, labels)
    rows = {}
    for name, share in taken.items():
        chosen = evenly(len(order), min(round(share * num_rows), len(order)))
        rows[name] = np.sort(order[chosen])
        order = order[~chosen]
    return {"train": np.sort(order), **rows}


def _shuffled(num_rows: int, seed: int, labels: np.ndarray | None) -> np.ndarray:
    """Return all rows in a random order, class after class where there are labels."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(num_rows)
    return order if labels is None else order[np.argsort(labels[order], kind="stable")]


def evenly(num_rows: int, num_chosen: int, first: int = 0, count: int | None = None) -> np.ndarray:
    """Return a mask that chooses exactly ``num_chosen`` of ``num_rows`` rows, evenly spread.

    Args:
        num_rows: Rows to choose from.
        num_chosen: Rows to choose.
        first: Where the mask begins.
        count: How long it is; None: to the end.
    """
    import numpy as np

    steps = np.arange(first, num_rows + 1 if count is None else first + count + 1) * num_chosen // max(num_rows, 1)
    return np.diff(steps) > 0


def split_parts(parts: Mapping[str, Columns], conf: SharesConf, stratify: bool) -> dict[str, Columns]:
    """Return the splits in memory: what the data brings itself, limited, and the shares that ``conf`` takes from train.

    Rows of one ``group`` stay together: then shares count groups, and ``limit`` takes whole ones.

    Raises:
        DatasetError: The shares make no sense, or a split has no row.
    """
    import numpy as np

    taken = shares(conf.split, parts)
    kept = {name: _limited(part, conf, stratify) for name, part in parts.items() if name not in taken}
    taken = {name: share for name, share in taken.items() if share}
    train = kept["train"]
    units = _units(train)
    num_units = len(train["y"]) if units is None else int(units[-1]) + 1
    if taken:
        rows = split_rows(num_units, taken, conf.seed, train["y"] if stratify and units is None else None)
        if units is not None:
            rows = {name: np.flatnonzero(np.isin(units, chosen)) for name, chosen in rows.items()}
        kept |= {name: take(train, chosen) for name, chosen in rows.items()}
    what = f"{num_units} {'rows' if units is None else 'groups'}"
    check_not_empty({name: len(part["y"]) for name, part in kept.items()}, taken, what)
    return {name: kept[name] for name in SPLITS if name in kept}


def _units(part: Columns) -> np.ndarray | None:
    """Return the number of each row's group, (rows,), counted in their order; None if each row is for itself."""
    import numpy as np

    group = part.get("group")
    return None if group is None else np.cumsum(np.r_[False, group[1:] != group[:-1]])


def _limited(part: Columns, conf: SharesConf, stratify: bool) -> Columns:
    """Return as many rows as ``conf.limit`` says; of groups as many whole ones as fit, at least one."""
    import numpy as np

    num_rows = len(part["y"])
    if conf.limit is None or conf.limit >= num_rows:
        return part
    units = _units(part)
    if units is None:
        order = _shuffled(num_rows, conf.seed, part["y"] if stratify else None)
        return take(part, np.sort(order[evenly(num_rows, conf.limit)]))
    sizes = np.bincount(units)
    order = _shuffled(len(sizes), conf.seed, None)
    count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), conf.limit, side="right")))
    return take(part, np.flatnonzero(np.isin(units, order[:count])))


def take(part: Columns, rows: np.ndarray) -> Columns:
    """Return these rows of ``part``."""
    return {name: values[rows] for name, values in part.items()}


def check_not_empty(num_rows: Mapping[str, int], taken: Mapping[str, float], of: str) -> None:
    """Raise a DatasetError for a split without rows; ``of`` says what was shared out, ``10 rows`` say."""
    for name, count in num_rows.items():
        if not count and name in taken:
            message = f"split '{name}' is empty: {taken[name]:g} of {of} is less than one."
            raise DatasetError(message, f"Raise dataset.split.{name}, or raise dataset.limit.")
        if not count:
            raise DatasetError(f"split '{name}' has no rows.", "Check dataset.path, dataset.split and dataset.limit.")
