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

    Raises:
        DatasetError: The shares make no sense, or a split has no row.
    """
    taken = shares(conf.split, parts)
    kept = {name: _limited(part, conf, stratify) for name, part in parts.items() if name not in taken}
    taken = {name: share for name, share in taken.items() if share}
    train = kept.pop("train")
    if taken:
        labels = train["y"] if stratify else None
        rows = split_rows(len(train["y"]), taken, conf.seed, labels)
        kept |= {name: take(train, chosen) for name, chosen in rows.items()}
    else:
        kept["train"] = train
    check_not_empty({name: len(part["y"]) for name, part in kept.items()}, taken, len(train["y"]))
    return {name: kept[name] for name in SPLITS if name in kept}


def _limited(part: Columns, conf: SharesConf, stratify: bool) -> Columns:
    import numpy as np

    num_rows = len(part["y"])
    if conf.limit is None or conf.limit >= num_rows:
        return part
    order = _shuffled(num_rows, conf.seed, part["y"] if stratify else None)
    return take(part, np.sort(order[evenly(num_rows, conf.limit)]))


def take(part: Columns, rows: np.ndarray) -> Columns:
    """Return these rows of ``part``."""
    return {name: values[rows] for name, values in part.items()}


def split_groups(parts: Mapping[str, Columns], conf: SharesConf, stratify: bool) -> dict[str, Columns]:
    """Return the splits; the rows of a query stay together, so that shares and limit count queries."""
    import numpy as np

    taken = shares(conf.split, parts)
    kept = {name: part for name, part in parts.items() if name not in taken}
    taken = {name: share for name, share in taken.items() if share}
    train = kept["train"]
    begins = np.flatnonzero(np.r_[True, train["group"][1:] != train["group"][:-1]])
    number = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(train["group"])]))
    if taken:
        rows = split_rows(len(begins), taken, conf.seed, None)
        kept |= {name: take(train, np.flatnonzero(np.isin(number, chosen))) for name, chosen in rows.items()}
    check_not_empty({name: len(part["y"]) for name, part in kept.items()}, taken, len(begins))
    return {name: _first_groups(kept[name], conf.limit) for name in SPLITS if name in kept}


def _first_groups(part: Columns, limit: int | None) -> Columns:
    """Return the first queries, as many whole ones as ``limit`` rows hold, at least one."""
    import numpy as np

    group = part["group"]
    if limit is None or limit >= len(group):
        return part
    begins = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    ends = np.r_[begins[1:], len(group)]
    count = max(int(ends[0]), int(ends[ends <= limit].max(initial=0)))
    return take(part, np.arange(count))


def check_not_empty(num_rows: Mapping[str, int], taken: Mapping[str, float], num_all: int) -> None:
    """Raise a DatasetError for a split without rows."""
    for name, count in num_rows.items():
        if not count and name in taken:
            message = f"split '{name}' is empty: {taken[name]:g} of {num_all} rows is less than one."
            raise DatasetError(message, f"Raise dataset.split.{name}, or raise dataset.limit.")
        if not count:
            raise DatasetError(f"split '{name}' has no rows.", "Check dataset.path, dataset.split and dataset.limit.")
