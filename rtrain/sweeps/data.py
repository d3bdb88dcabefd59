"""The data of a sweep's trials: read once for all trials that name the same."""

from __future__ import annotations

import json
from typing import Any

from rtrain.cluster import StartingCluster
from rtrain.config.session import Composed
from rtrain.datasets.base import Dataset
from rtrain.preparation import Stages, load_dataset


class Data:
    """Reads datasets, and keeps them.

    Args:
        observer: Hears what is read.
        starting: The cluster, if there is one.
    """

    def __init__(self, observer: Stages, starting: StartingCluster | None) -> None:
        self._observer, self._starting = observer, starting
        self._read: dict[str, Dataset | None] = {}
        self._shared: dict[str, Any] = {}

    def of(self, composed: Composed) -> Dataset | None:
        """Return the data of a trial.

        Raises:
            ConfigError: They can't be read.
        """
        key = _key(composed)
        if key not in self._read:
            self._read[key] = load_dataset(composed, self._observer, self._starting)
        return self._read[key]

    def shared(self, composed: Composed) -> Any:
        """Return a reference to them in Ray's object store; None for no data."""
        import ray

        key = _key(composed)
        if key not in self._shared:
            dataset = self.of(composed)
            self._shared[key] = None if dataset is None else ray.put(dataset)
        return self._shared[key]


def _key(composed: Composed) -> str:
    return json.dumps(composed.resolved["dataset"], sort_keys=True, default=str)
