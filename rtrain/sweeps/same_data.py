"""Whether trials that are added to a sweep train on the same rows as those before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtrain.config.composed import Composed
from rtrain.config.files.locations import shown
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.runs.manifest import MANIFEST, read_manifest
from rtrain.sweeps.data import data_key


class TrainedRows:
    """The rows that the finished trials of a sweep were trained on.

    Args:
        notice: Takes a line for the user.
    """

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._runs: dict[str, list[Path]] = {}
        """By the key of their data, the run directories of finished trials."""

    def add(self, run_dir: Path, composed: Composed) -> None:
        """Take note of a finished trial."""
        self._runs.setdefault(data_key(composed), []).append(run_dir)

    def check(self, composed: Composed, info: DatasetInfo) -> None:
        """Compare the rows of a trial to come with those of finished trials whose config names the same data.

        Raises:
            ConfigError: They differ, and ``run.resume_data`` does not allow it.
        """
        runs = self._runs.pop(data_key(composed), [])  # the others are of the same rows
        run_dir = next((one for one in reversed(runs) if (one / MANIFEST).exists()), None)
        before = None if run_dir is None else read_manifest(run_dir).dataset
        # Fingerprints of files and of values can't be compared.
        if run_dir is None or before is None or before["memory"] != info.memory:
            return
        if before["fingerprint"] == info.fingerprint:
            return
        what = f"the rows of {info.name} have changed since {shown(run_dir)} was trained"
        if composed.conf.run.resume_data != "changed":
            raise ConfigError(
                f"{what}: old and new trials could not be compared.",
                "Start another sweep: sweep.name=NAME. To mix them all the same: run.resume_data=changed",
            )
        self._notice(f"{what} (run.resume_data=changed)")
