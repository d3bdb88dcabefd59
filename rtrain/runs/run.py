"""A run as its directory tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint
from rtrain.runs.events import Event, events_file, read_events
from rtrain.runs.manifest import Manifest, read_manifest


@dataclass(frozen=True)
class Run:
    """A finished, failed or still running run; reads files and executes nothing."""

    path: Path
    manifest: Manifest

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read the run directory ``path``.

        Raises:
            RtrainError: It is no run directory.
        """
        return cls(Path(path), read_manifest(Path(path)))

    @property
    def status(self) -> str:
        """``running``, ``succeeded``, ``failed``, ``interrupted`` or ``preempted``."""
        return self.manifest.status

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """The last value of each metric."""
        return self.manifest.metrics

    @property
    def best_checkpoint(self) -> Path | None:
        """Folder of the best checkpoint by the run's monitor, else of the last one; None without checkpoints."""
        if self.manifest.best_checkpoint is not None:
            return self.path / self.manifest.best_checkpoint
        return latest_checkpoint(self.path)

    @property
    def checkpoints(self) -> list[Path]:
        """Folders of all checkpoints that were kept, oldest first."""
        return [checkpoints_dir(self.path) / record["name"] for record in self.manifest.checkpoints]

    def events(self) -> Iterator[Event]:
        """Yield every report of the run, oldest first."""
        return read_events(events_file(self.path))
