"""The record of a run in a store, brought into a folder here to be looked at, without the checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.runs.manifest import MANIFEST
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun, fetch_record, was_alive_lately
from rtrain.storage.folders import read_json
from rtrain.storage.mirror import INTERVAL_SECONDS
from rtrain.storage.stores import errors_named


class StoredRecord:
    """What a store has of a run but its checkpoints, in a folder here.

    Args:
        run: As the store has it.
        folder: To be made.

    Raises:
        ConfigError: The store refuses or does not answer.
    """

    poll_seconds = INTERVAL_SECONDS / 2

    def __init__(self, run: StoredRun, folder: Path) -> None:
        self.folder, self._stored = folder, run.folder
        folder.mkdir(parents=True)
        self._bring(run.manifest)

    def goes_on(self) -> bool:
        """Bring what is new, and tell whether a machine still works on the run.

        Raises:
            ConfigError: The store refuses or does not answer.
        """
        with errors_named(self._stored.url, "RUN"):
            manifest = patiently(partial(read_json, self._stored, MANIFEST))
        self._bring(manifest)
        return was_alive_lately(manifest)

    def _bring(self, manifest: Mapping[str, Any]) -> None:
        """Bring what belongs to a manifest, which was read before: of a run that is over, it is complete."""
        with errors_named(self._stored.url, "RUN"):
            try:
                self._fetch()
            except FileNotFoundError:  # parts of the events that were joined meanwhile
                self._fetch()
        write_atomic(self.folder / MANIFEST, to_json(manifest))

    def _fetch(self) -> None:
        fetch_record(self._stored, patiently(self._stored.sizes), self.folder)
