"""The data of a sweep's trials: read once for all trials that name the same, and let go when none needs them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rtrain.config.composed import Composed
from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.datasets.memory import SHARE, free_bytes
from rtrain.errors import RtrainError
from rtrain.runs.observer import Stages
from rtrain.sweeps.cluster import SweepCluster
from rtrain.training.preparation import load_dataset


class Data:
    """Reads datasets, and keeps those that later trials need, as far as they fit into memory together.

    A released dataset is read again if a trial needs it after all.

    Args:
        observer: Notified of each dataset that is read.
        cluster: Where they are trained.
    """

    def __init__(self, observer: Stages, cluster: SweepCluster) -> None:
        self._observer, self._cluster = observer, cluster
        self._read: dict[str, Dataset | None] = {}
        self._shared: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        """Bytes of those that are held, the one that was used last at the end."""
        self._expected: Counter[str] = Counter()

    def expect(self, composed: Composed) -> bool:
        """Take note of a trial to come; return whether its data is held, or fits together with what is held."""
        key = data_key(composed)
        self._expected[key] += 1
        used = sum(self._sizes.values())
        return key in self._sizes or used + max(self._sizes.values(), default=0) <= self._budget()

    def done(self, composed: Composed) -> None:
        """Take note that a trial is over; data that no other one was expected to need is let go."""
        key = data_key(composed)
        self._expected[key] -= 1
        if self._expected[key] <= 0:
            self._let_go(key)

    def of(self, composed: Composed) -> Dataset | None:
        """Return the data of a trial.

        Raises:
            ConfigError: They can't be read.
        """
        key = data_key(composed)
        if key not in self._read:
            self._read[key] = load_dataset(composed, self._observer, self._cluster.starting)
        self._used(key, self._read[key])
        return self._read[key]

    def shared(self, composed: Composed) -> Any:
        """Return a reference to them in Ray's object store, or to why they can't be read; None for no data."""
        import ray

        key = data_key(composed)
        if key not in self._shared:
            try:
                dataset = self.of(composed)
            except RtrainError as error:
                return ray.put(error)
            self._shared[key] = None if dataset is None else ray.put(dataset)
            self._read.pop(key)  # the store has them now
        self._used(key)
        return self._shared[key]

    def _used(self, key: str, dataset: Dataset | None = None) -> None:
        """Note that data is in use; what was not for the longest time goes, if all together are too large."""
        size = self._sizes.pop(key, None)
        self._sizes[key] = num_bytes(dataset) if size is None else size
        for other in list(self._sizes)[:-1]:
            if sum(self._sizes.values()) > self._budget():
                self._let_go(other)

    def _let_go(self, key: str) -> None:
        for held in (self._read, self._shared, self._sizes):
            held.pop(key, None)

    def _budget(self) -> float:
        return (free_bytes() + sum(self._sizes.values())) * SHARE


def num_bytes(dataset: Dataset | None) -> int:
    """Return the bytes of the rows that are in memory."""
    splits = () if dataset is None else dataset.splits.values()
    held = (split.columns.values() for split in splits if isinstance(split, ResidentSplit))
    return sum(values.nbytes for columns in held for values in columns)


def data_key(composed: Composed) -> str:
    """Return what decides the data of a trial."""
    named = [composed.resolved.get(key) for key in ("dataset", "datasets")]
    return json.dumps(named, sort_keys=True, default=str)
