"""A run as its directory tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint
from rtrain.runs.events import Event, events_file, read_events
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.status import Status, is_killed
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable

NOT_SHOWN = ("train/lr", "train/rows_per_second")
MOST_METRICS = 4
MOST_CHARACTERS = 100
"""What a representation shows of metrics, and of a line."""


@dataclass(frozen=True, repr=False)
class Run:
    """A finished, failed or still running run; reads files and executes nothing.

    It stands for the path of its run directory wherever one is wanted: ``rtrain.evaluate(run)``.
    """

    path: Path
    manifest: Manifest

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a run.

        Args:
            path: Its run directory; a text may also be a short name, ``last`` say, as commands take it.

        Raises:
            RtrainError: It is not a run directory.
        """
        folder = Path(import_module("rtrain.history.references").find_newest(path) if isinstance(path, str) else path)
        return cls(folder, read_manifest(folder))

    @property
    def status(self) -> str:
        """``running``, ``succeeded``, ``failed``, ``interrupted``, ``preempted`` or ``killed``, as it is now."""
        if self.manifest.status == Status.RUNNING and is_killed(self.path, self.manifest.host.get("hostname")):
            now = read_manifest(self.path).status  # it may have ended since this was read
            return Status.KILLED if now == Status.RUNNING else now
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

    def frame(self) -> Any:
        """Return the events as a ``pandas.DataFrame``: ``step``, ``epoch``, ``time`` (UTC), then each metric.

        One row for each report, oldest first; a metric that it lacks is NaN, and one called ``epoch``, say, is in the
        column ``reported/epoch``. ``polars.from_pandas`` takes it.
        """
        return import_module("rtrain.api.frames").events_frame(self.events())

    # What is done with a run lies above what a run is, and is imported when it is called.

    def evaluate(self, overrides: Any = (), **options: Any) -> dict[str, float]:
        """Return the metrics of a checkpoint on the rows of a dataset; see ``rtrain.evaluate``."""
        found: dict[str, float] = import_module("rtrain").evaluate(self, overrides, **options)
        return found

    def predict(self, output: Any = None, overrides: Any = (), **options: Any) -> Any:
        """Return a ``pyarrow.Table`` of predictions, or write them into ``output``; see ``rtrain.predict``."""
        return import_module("rtrain").predict(self, output, overrides, **options)

    def resume(self, overrides: Any = (), **options: Any) -> Run:
        """Resume the run from its newest checkpoint and return it as it is then; see ``rtrain.resume``."""
        resumed: Run = import_module("rtrain").resume(self, overrides, **options)
        return resumed

    def __fspath__(self) -> str:
        return str(self.path)

    def __hash__(self) -> int:
        return hash(self.path)  # a manifest changes

    def __repr__(self) -> str:
        return "\n".join([f"Run {self._title}", *(f"  {name:<7} {text}" for name, text in self._facts)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align: left'>{name}</th><td style='text-align: left'>{escape(text)}</td></tr>"
            for name, text in self._facts
        )
        return f"<div><b>Run</b> {escape(self._title)}<table>{rows}</table></div>"

    @property
    def _title(self) -> str:
        seconds = self.manifest.timings_seconds.get("total")
        lasted = "" if seconds is None else f" after {seconds:.1f} s"
        reason = "" if self.manifest.exit_reason is None else f": {self.manifest.exit_reason}"
        return _line(f"{self.manifest.run_name} {self.status}{lasted}{reason}")

    @property
    def _facts(self) -> list[tuple[str, str]]:
        best, metrics = self.manifest.best or {}, [one for one in self.metrics.items() if one[0] not in NOT_SHOWN]
        more = len(metrics) - MOST_METRICS
        last = "  ".join(f"{name} {number_text(value)}" for name, value in metrics[:MOST_METRICS])
        lines = [
            ("best", f"{best['monitor']} {number_text(best['value'])} (epoch {best['epoch']}, step {best['step']})")
            if best.get("value") is not None
            else ("best", ""),
            ("last", f"{last}  and {more} more" if more > 0 else last),
            ("folder", printable(str(self.path))),
        ]
        return [(name, text if name == "folder" else _line(text)) for name, text in lines if text]


def _line(text: str) -> str:
    """Return the first line of a text as a screen may show it."""
    first = printable(text.split("\n")[0])
    return first if len(first) <= MOST_CHARACTERS else f"{first[:MOST_CHARACTERS]}..."
