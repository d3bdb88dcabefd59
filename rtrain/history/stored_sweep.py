"""The record of a sweep in a store, brought into a folder here to be watched."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rtrain.runs.filesystem.files import SWEEP, to_json, write_atomic
from rtrain.runs.manifest import MANIFEST
from rtrain.runs.status import Status
from rtrain.storage.access import patiently
from rtrain.storage.fetching import is_lately
from rtrain.storage.folders import open_folder, read_json
from rtrain.storage.mirror import INTERVAL_SECONDS
from rtrain.storage.stores import errors_named
from rtrain.sweeps.record.sweep_record import load_record


class StoredSweep:
    """What a store has of a sweep as a whole, in a folder here.

    Args:
        url: Of the sweep.
        folder: To be made.

    Raises:
        ConfigError: The store refuses or does not answer.
    """

    poll_seconds = INTERVAL_SECONDS / 2

    def __init__(self, url: str, folder: Path) -> None:
        self.folder, self._url = folder, url
        folder.mkdir(parents=True)
        with errors_named(url, "RUN"):
            self._home = patiently(lambda: open_folder(url))
            self._bring()

    def goes_on(self) -> bool:
        """Bring what is new, and tell whether a machine still works on the sweep: it or one of its trials was copied.

        Raises:
            ConfigError: The store refuses or does not answer.
            DamagedSweepError: What it has makes no sense.
        """
        with errors_named(self._url, "RUN"):
            written_at = self._bring()
            record = load_record(self.folder)
            under_way = [one.name for one in record.trials if one.status == Status.RUNNING]
            return record.status == Status.RUNNING and (
                is_lately(written_at) or any(map(self._was_copied_lately, under_way))
            )

    def _bring(self) -> str | None:
        """Bring the record, and return when it was written; it is only when something changes."""
        record = patiently(partial(read_json, self._home, SWEEP))
        write_atomic(self.folder / SWEEP, to_json(record))
        written_at = record.get("written_at")
        return written_at if isinstance(written_at, str) else None

    def _was_copied_lately(self, trial: str) -> bool:
        """Tell whether a trial gives signs of life; one that is over counts, whose sweep is yet to say so."""
        try:
            manifest = patiently(partial(read_json, self._home, f"{trial}/{MANIFEST}"))
        except FileNotFoundError:
            return False
        return is_lately((manifest.get("storage") or {}).get("copied_at"))
