"""``rtrain.runs()``: the runs that were, for Python and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError
from rtrain.history.choosing import ordered
from rtrain.history.listing import listed_rows
from rtrain.history.query.where import matching
from rtrain.history.rows import Row
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.storage.stores import is_url

SHOWN = ("name", "status", "monitor", "best", "seconds", "started")
"""Columns of the table that a notebook shows."""
MOST_ROWS = 20


class Runs(Sequence[Run]):
    """Runs in an order; each is read when it is taken out."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self._rows[at]) if isinstance(at, slice) else Run.load(self._rows[at].path)

    def __repr__(self) -> str:
        return f"<{len(self)} runs>"

    def _repr_html_(self) -> str:
        return str(self.frame()[list(SHOWN)].to_html(max_rows=MOST_ROWS, na_rep=""))

    def frame(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each run, indexed by its id.

        Its columns are what ``--columns`` knows: ``status``, ``best``, ``metrics.val/loss``,
        ``config.trainer.optimizer.lr`` and so on. Times are UTC.
        """
        import pandas as pd

        frame = pd.DataFrame([{**row.facts, "path": row.place} for row in self._rows])
        for name in {"id", *SHOWN, "ended"} - set(frame.columns):
            frame[name] = None
        for name in ("started", "ended"):
            frame[name] = pd.to_datetime(frame[name], unit="s", utc=True)
        return frame.set_index("id")


def runs(*folders: str | Path, where: str | None = None, sort: str | None = None) -> Runs:
    """Return runs and trials, the newest first; nothing in their folders is executed.

    Args:
        folders: Where to look; none: ``runs``, ``multirun`` and each ``run.root_dir`` of the project in the current
            folder.
        where: What they have to fulfil, as ``rtrain runs ls --where`` has it: ``"val/accuracy > 0.9"``.
        sort: The name of a field, with ``-`` before it the largest first.

    Raises:
        ConfigError: A folder does not exist, or the expression is wrong.
    """
    if urls := [str(one) for one in folders if is_url(str(one))]:
        raise ConfigError(f"{urls[0]} is in a store: runs are read from folders.", to_try("rtrain runs fetch URL"))
    among = listed_rows(folders, where, trials=True)
    rows = ordered(matching(among, where), sort, among)
    return Runs([row for row in rows if row.kind != "sweep" and row.status != Status.DAMAGED])
